import { EXCHANGE_ERRORS } from '../exchange/errors.js';
import type { Exchange } from '../exchange/exchange.js';
import { type GatewayErrorOutcome, gatewayError } from '../exchange/outcome.js';
import { PrincipalCounts, shareOf } from '../exchange/utils/share.js';
import type { Ticker, Ticking } from '../exchange/utils/ticker.js';
import { NOWHERE, UnorderedSet } from '../exchange/utils/unordered-set.js';
import { Subscriptions } from './subscriptions.js';

export interface InFlightLimits {
  /** Longest time for one exchange, in milliseconds. */
  readonly totalMs: number;
  /** Exchanges in flight at a time. */
  readonly maxExchanges: number;
  /** Open `subscriptions/listen` streams at a time. */
  readonly maxListeners: number;
}

/** Why exchanges are cancelled when the gateway ends. */
const SHUTDOWN = 'the gateway is shutting down';

/** Streams that stay open until the client or the gateway ends them. */
const LASTING: ReadonlySet<string> = new Set(['subscriptions/listen']);

/** The exchanges in flight on a route: how many there may be, how long they may take, and how they end. */
export class InFlight implements Ticking {
  place = NOWHERE;
  readonly #route: string;
  readonly #limits: InFlightLimits;
  readonly #ticker: Ticker;
  readonly #exchanges = new UnorderedSet<Exchange>();
  readonly #subscriptions: Subscriptions;
  readonly #counts = new PrincipalCounts();
  #onIdle: (() => void) | undefined;
  #draining = false;

  /** @param route for messages */
  constructor(route: string, limits: InFlightLimits, ticker: Ticker) {
    this.#route = route;
    this.#limits = limits;
    this.#ticker = ticker;
    this.#subscriptions = new Subscriptions(limits.maxListeners);
  }

  /** Admits an exchange; its time begins. Returns the refusal at a limit. */
  admit(exchange: Exchange): GatewayErrorOutcome | undefined {
    const route = this.#route;
    const { totalMs, maxExchanges, maxListeners } = this.#limits;
    const { principal } = exchange.caller;
    const share = shareOf(maxExchanges, principal);
    if (this.#exchanges.size >= maxExchanges)
      return gatewayError(EXCHANGE_ERRORS.ERAGATE_REQUEST_LIMIT, { route, limit: maxExchanges });
    if (this.#counts.of(principal) >= share)
      return gatewayError(EXCHANGE_ERRORS.ERAGATE_REQUEST_SHARE, { route, limit: share });
    const lasts = LASTING.has(exchange.request.method);
    if (lasts && !this.#subscriptions.admit(exchange))
      return gatewayError(EXCHANGE_ERRORS.ERAGATE_SUBSCRIPTION_LIMIT, { route, limit: maxListeners });
    this.#exchanges.add(exchange);
    this.#counts.add(principal);
    if (!lasts) exchange.limit(totalMs);
    this.#ticker.add(this);
    return undefined;
  }

  /** An admitted exchange is over. */
  release(exchange: Exchange): void {
    this.#exchanges.remove(exchange);
    this.#counts.add(exchange.caller.principal, -1);
    if (LASTING.has(exchange.request.method)) this.#subscriptions.release(exchange);
    if (this.#exchanges.size === 0) this.#onIdle?.();
  }

  /** Cancels what is over its time. */
  tick(now: number): void {
    if (this.#exchanges.size === 0) this.#ticker.remove(this);
    else this.#exchanges.each((exchange) => exchange.tick(now));
    if (this.#draining) this.#cancelWaiting();
  }

  /** Resolves when no exchange is in flight but those that last, or after `limitMs`; then cancels what is left. */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    this.#cancelWaiting();
    if (this.#exchanges.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limitMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#exchanges.each((exchange) => exchange.cancel(SHUTDOWN));
  }

  /** Cancels what waits for events or for a person: neither can be expected to come in time. */
  #cancelWaiting(): void {
    this.#exchanges.each((exchange) => {
      if (LASTING.has(exchange.request.method) || exchange.parked) exchange.cancel(SHUTDOWN);
    });
  }
}
