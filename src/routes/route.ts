import { LRUCache } from 'lru-cache';
import { abortable } from '../exchange/abortable.js';
import { CACHEABLE } from '../exchange/cache-key.js';
import type { ChangeFilter } from '../exchange/changes.js';
import { badGateway, CODE, cancelled, ExchangeError, overloaded, timedOut } from '../exchange/errors.js';
import type { Exchange, ExchangeRequest } from '../exchange/exchange.js';
import type { Subscriber, Subscription } from '../exchange/hub.js';
import type { CallRouting, Outbound, ServerDescription } from '../exchange/outbound.js';
import { type ErrorOutcome, type Outcome, ownError } from '../exchange/outcome.js';
import type { ResultCache } from '../exchange/result-cache.js';
import type { RouteService } from '../exchange/route-service.js';
import { OtherSide, WrongEra } from '../exchange/side-errors.js';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import type { Caller, EraName } from '../exchange/types.js';
import { NOWHERE, UnorderedSet } from '../exchange/unordered-set.js';
import type { EraChoice } from './era-choice.js';
import { Listeners } from './listeners.js';

export interface RouteOptions {
  readonly path: string;
  readonly eraChoice: EraChoice;
  readonly outbounds: readonly Outbound[];
  readonly ticker: Ticker;
  /** Longest time for one exchange in milliseconds. */
  readonly totalMs: number;
  /** Exchanges in flight at a time. */
  readonly maxExchanges: number;
  /** Open `subscriptions/listen` streams at a time. */
  readonly maxListeners: number;
  /** Whether the backend gets the callers' own credentials. */
  readonly forwardsCredentials: boolean;
  readonly cache: ResultCache;
  readonly record: (exchange: Exchange, httpStatus: number, outcome: Outcome) => void;
  readonly onFault: (error: unknown) => void;
}

/** Streams that last as long as the client wants them to. */
const LASTING: ReadonlySet<string> = new Set(['subscriptions/listen']);
const REMEMBERED_DESCRIPTIONS = 200;

interface KnownDescription {
  readonly description: ServerDescription;
  readonly at: number;
}

/** What is done with an exchange on the side that fits the backend. */
type Work = (outbound: Outbound, exchange: Exchange, routing?: CallRouting) => Promise<Outcome>;

const call: Work = (outbound, exchange, routing) => outbound.call(exchange, routing);

/** A route at run time: one backend behind one path. */
export class Route implements RouteService, Ticking {
  place = NOWHERE;
  readonly path: string;
  readonly #options: RouteOptions;
  readonly #inFlight = new UnorderedSet<Exchange>();
  readonly #descriptions = new LRUCache<string, KnownDescription>({ max: REMEMBERED_DESCRIPTIONS });
  readonly #listeners: Listeners;
  #onIdle: (() => void) | undefined;
  #draining = false;

  constructor(options: RouteOptions) {
    this.path = options.path;
    this.#options = options;
    this.#listeners = new Listeners(options.maxListeners);
  }

  run(exchange: Exchange): Promise<Outcome> {
    return CACHEABLE.has(exchange.request.method)
      ? this.#runCached(exchange)
      : this.#inFlightWhile(exchange, call);
  }

  async #runCached(exchange: Exchange): Promise<Outcome> {
    const { cache } = this.#options;
    const outcome = await this.#inFlightWhile(exchange, (outbound, _, routing) =>
      cache.through(exchange, outbound.era, () => outbound.call(exchange, routing)),
    );
    return (isDown(outcome) ? cache.stale(exchange) : undefined) ?? outcome;
  }

  /** Carries out an exchange within the limits. */
  async #inFlightWhile(exchange: Exchange, work: Work): Promise<Outcome> {
    const { ticker, totalMs, maxExchanges } = this.#options;
    if (this.#inFlight.size >= maxExchanges) {
      return overloaded(`limit of ${maxExchanges} requests in flight reached`).outcome;
    }
    const lasts = LASTING.has(exchange.request.method);
    if (lasts && !this.#listeners.admit(exchange)) {
      return overloaded(`limit of ${this.#options.maxListeners} open subscriptions reached`).outcome;
    }
    this.#inFlight.add(exchange);
    if (!lasts) exchange.limit(totalMs);
    ticker.add(this);
    try {
      const { doubts } = this.#options.eraChoice;
      const side = this.#options.eraChoice.outboundFor(exchange.caller, exchange.request);
      const outbound = side instanceof Promise ? await side : side;
      try {
        return this.#noted(outbound, await begin(outbound, exchange, work));
      } catch (error) {
        const other = await this.#otherSide(outbound, doubts, error, exchange.caller, exchange.request);
        return this.#noted(
          other,
          await begin(other, exchange, work, { viaOtherEra: error instanceof OtherSide }),
        );
      }
    } catch (error) {
      return this.#failure(error, exchange);
    } finally {
      this.#inFlight.remove(exchange);
      if (lasts) this.#listeners.release(exchange);
      if (this.#inFlight.size === 0) this.#onIdle?.();
    }
  }

  /** Notes what an outcome tells of the side that it came from. */
  #noted(side: Outbound, outcome: Outcome): Outcome {
    if (outcome.type === 'error' && outcome.cannotAsk === true) this.#options.eraChoice.cannotAsk(side);
    return outcome;
  }

  async eraFor(caller: Caller): Promise<EraName> {
    return (await this.#options.eraChoice.outboundFor(caller)).era;
  }

  async describe(caller: Caller): Promise<ServerDescription> {
    const key = `${caller.era} ${caller.principal} ${caller.capabilities.key}`;
    // A client with a session is attached to its side of the backend by being asked for.
    const known = caller.session === undefined ? this.#descriptions.get(key) : undefined;
    const age = known === undefined ? 0 : performance.now() - known.at;
    // A backend that says how long its description is good for need not be asked again before then.
    if (known !== undefined && age < known.description.ttlMs) {
      return { ...known.description, ttlMs: Math.floor(known.description.ttlMs - age) };
    }
    try {
      const description = await this.#withTarget(caller, (outbound) => outbound.describe(caller));
      this.#descriptions.set(key, { description, at: performance.now() });
      return description;
    } catch (error) {
      const outcome = this.#failure(error);
      // A backend that is down for a while does not change what it is; challenges are for the client.
      if (known !== undefined && isDown(outcome)) {
        return { ...known.description, ttlMs: 0 };
      }
      throw new ExchangeError(outcome);
    }
  }

  async authenticate(caller: Caller): Promise<void> {
    try {
      await this.#withTarget(caller, (outbound) => outbound.authenticate(caller));
    } catch (error) {
      const outcome = this.#failure(error);
      // What the backend has to say in words of its own is not about the credentials.
      if (outcome.origin === 'gateway' && !lacksScope(outcome)) throw new ExchangeError(outcome);
    }
  }

  async subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    try {
      return await this.#withTarget(caller, (outbound) => outbound.subscribe(caller, filter, subscriber));
    } catch (error) {
      throw new ExchangeError(this.#failure(error));
    }
  }

  async follow(
    exchange: Exchange,
    filter: ChangeFilter,
    subscriber: Subscriber,
    acknowledge: (honoured: ChangeFilter) => void,
  ): Promise<Outcome> {
    return this.#inFlightWhile(exchange, async (outbound) => {
      const wanted = outbound.subscribe(exchange.caller, filter, subscriber);
      const subscription = await abortable(exchange.signal, wanted, { late: (late) => late.close() });
      acknowledge(subscription.honoured);
      const reason = await new Promise<string>((resolve) => exchange.attach({ onCancelled: resolve }));
      subscription.close();
      throw cancelled(reason);
    });
  }

  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void {
    this.#options.record(exchange, httpStatus, outcome);
  }

  /** Looks after the deadlines of what is in flight. */
  tick(now: number): void {
    if (this.#inFlight.size === 0) this.#options.ticker.remove(this);
    else this.#inFlight.each((exchange) => exchange.tick(now));
    if (this.#draining) this.#endWaiting();
  }

  warmUp(): void {
    this.#options.eraChoice.warmUp();
  }

  /** Resolves when no exchange is in flight but those that last, or after `limitMs`; then ends what is left. */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    this.#endWaiting();
    if (this.#inFlight.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limitMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#inFlight.each((exchange) => exchange.cancel(SHUTDOWN));
  }

  /** Ends what waits for events or for people, none of whom can be expected to come in time. */
  #endWaiting(): void {
    this.#inFlight.each((exchange) => {
      if (LASTING.has(exchange.request.method) || exchange.parked) exchange.cancel(SHUTDOWN);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#options.outbounds.map((outbound) => outbound.close()));
  }

  /** Does something on the side that fits the backend; once more if the backend proves to be of the other era. */
  async #withTarget<T>(caller: Caller, work: (outbound: Outbound) => Promise<T>): Promise<T> {
    const { doubts } = this.#options.eraChoice;
    const outbound = await this.#options.eraChoice.outboundFor(caller);
    try {
      return await work(outbound);
    } catch (error) {
      return await work(await this.#otherSide(outbound, doubts, error, caller));
    }
  }

  /**
   * The side to try after a refusal by one that may be the wrong one.
   * @param doubts how often the verdict had been doubted when the side was chosen
   * @throws what the refusal means where there is no other side to try
   */
  async #otherSide(
    tried: Outbound,
    doubts: number,
    error: unknown,
    caller: Caller,
    request?: ExchangeRequest,
  ): Promise<Outbound> {
    const { eraChoice } = this.#options;
    if (error instanceof OtherSide) {
      const other = eraChoice.otherThan(tried);
      if (other === undefined) throw new ExchangeError(error.otherwise);
      return other;
    }
    if (!(error instanceof WrongEra)) throw error;
    const meant = error.otherwise === undefined ? error : new ExchangeError(error.otherwise);
    if (!eraChoice.contradicted(tried.era, doubts, error.proof ? error.message : undefined)) throw meant;
    let other: Outbound;
    try {
      other = await eraChoice.outboundFor(caller, request);
    } catch (failure) {
      throw error.otherwise === undefined ? failure : meant;
    }
    // The verdict was right, so the refusal is about something else and would only be repeated.
    if (other === tried) throw meant;
    return other;
  }

  /** A challenge is for whoever has the credential. Where that is the gateway, no client can do anything about it. */
  #forClient(outcome: ErrorOutcome): ErrorOutcome {
    if (outcome.status !== 401 || this.#options.forwardsCredentials) return outcome;
    return badGateway(`the backend refuses the credential that the gateway has for it: ${outcome.message}`)
      .outcome;
  }

  #failure(error: unknown, exchange?: Exchange): Outcome & { type: 'error' } {
    if (exchange?.timedOut === true) return timedOut(this.#options.totalMs).outcome;
    if (error instanceof ExchangeError) return this.#forClient(error.outcome);
    if (error instanceof WrongEra)
      return ownError({ code: CODE.internal, message: error.message, status: 502 });
    this.#options.onFault(error);
    return ownError({ code: CODE.internal, message: 'Internal error of the gateway', status: 500 });
  }
}

/** @throws ExchangeError where the exchange ended while the side was looked for */
function begin(outbound: Outbound, exchange: Exchange, work: Work, routing?: CallRouting): Promise<Outcome> {
  if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
  exchange.notes.backendEra = outbound.era;
  return work(outbound, exchange, routing);
}

/** Why exchanges are cancelled when the gateway ends. */
export const SHUTDOWN = 'the gateway is shutting down';

/** Whether a credential is good, and just not for what was asked (RFC 6750, section 3.1). */
function lacksScope({ status, headers }: ErrorOutcome): boolean {
  return status === 403 && /\berror="?insufficient_scope\b/.test(headers?.['www-authenticate'] ?? '');
}

function isDown(outcome: Outcome): boolean {
  return outcome.type === 'error' && outcome.status !== undefined && outcome.status >= 500;
}
