import type { Caller } from '../exchange/caller.js';
import type { ChangeFilter } from '../exchange/changes/change-filter.js';
import type { Subscriber } from '../exchange/changes/subscription.js';
import { cancelled, EXCHANGE_ERRORS, ExchangeError } from '../exchange/errors.js';
import type { Exchange } from '../exchange/exchange.js';
import type { CallRouting, Outbound, ServerDescription } from '../exchange/outbound.js';
import { type ErrorOutcome, gatewayError, type Outcome } from '../exchange/outcome.js';
import { CACHEABLE } from '../exchange/result-cache/cache-key.js';
import type { ResultCache } from '../exchange/result-cache/result-cache.js';
import type { EraName } from '../exchange/revision.js';
import type { RouteService } from '../exchange/route-service.js';
import { WrongEra } from '../exchange/side-errors.js';
import { abortable, waitFor } from '../exchange/utils/abortable.js';
import type { Ticker } from '../exchange/utils/ticker.js';
import { attempt } from './attempt.js';
import { Descriptions } from './descriptions.js';
import type { EraChoice } from './era-choice.js';
import { InFlight, type InFlightLimits } from './in-flight.js';

export interface RouteOptions {
  readonly path: string;
  readonly eraChoice: EraChoice;
  readonly outbounds: readonly Outbound[];
  readonly ticker: Ticker;
  readonly limits: InFlightLimits;
  /** Whether the backend gets the credentials of the callers. */
  readonly forwardsCredentials: boolean;
  readonly cache: ResultCache;
  readonly record: (exchange: Exchange, httpStatus: number, outcome: Outcome) => void;
  readonly onFault: (error: unknown) => void;
}

/** What is done for an exchange on one side of the backend. */
type Work = (side: Outbound, routing?: CallRouting) => Promise<Outcome>;

/** A route at run time: one backend behind one path. */
export class Route implements RouteService {
  readonly path: string;
  readonly #options: RouteOptions;
  readonly #inFlight: InFlight;
  readonly #descriptions = new Descriptions();

  constructor(options: RouteOptions) {
    this.path = options.path;
    this.#options = options;
    this.#inFlight = new InFlight(options.path, options.limits, options.ticker);
  }

  run(exchange: Exchange): Promise<Outcome> {
    return CACHEABLE.has(exchange.request.method)
      ? this.#runCached(exchange)
      : this.#carryOut(exchange, (side, routing) => side.call(exchange, routing));
  }

  async #runCached(exchange: Exchange): Promise<Outcome> {
    const { cache } = this.#options;
    const outcome = await this.#carryOut(exchange, (side, routing) =>
      cache.through(exchange, side.era, () => side.call(exchange, routing)),
    );
    return (isDown(outcome) ? cache.stale(exchange) : undefined) ?? outcome;
  }

  /** Carries out an exchange within the limits of the route; every failure is an outcome. */
  async #carryOut(exchange: Exchange, work: Work): Promise<Outcome> {
    const refused = this.#inFlight.admit(exchange);
    if (refused !== undefined) return refused;
    const { eraChoice } = this.#options;
    try {
      return await attempt(eraChoice, exchange, async (side, routing) => {
        if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
        exchange.notes.backendEra = side.era;
        const outcome = await work(side, routing);
        if (outcome.type === 'error' && outcome.cannotAsk === true) eraChoice.cannotAsk(side);
        return outcome;
      });
    } catch (error) {
      if (!exchange.timedOut) return this.failureOf(error);
      const { totalMs } = this.#options.limits;
      return gatewayError(EXCHANGE_ERRORS.ERAGATE_TIMEOUT, { route: this.path, ms: totalMs });
    } finally {
      this.#inFlight.release(exchange);
    }
  }

  async eraFor(caller: Caller, signal?: AbortSignal): Promise<EraName> {
    return (await waitFor(this.#options.eraChoice.outboundFor(caller), signal)).era;
  }

  async describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription> {
    const fresh = this.#descriptions.fresh(caller);
    if (fresh !== undefined) return fresh;
    try {
      const description = await attempt(this.#options.eraChoice, { caller, signal }, (side) =>
        side.describe(caller, signal),
      );
      this.#descriptions.set(caller, description);
      return description;
    } catch (error) {
      const outcome = this.failureOf(error);
      const stale = isDown(outcome) ? this.#descriptions.stale(caller) : undefined;
      if (stale === undefined) throw new ExchangeError(outcome);
      return stale;
    }
  }

  async authenticate(caller: Caller): Promise<void> {
    try {
      await attempt(this.#options.eraChoice, { caller }, (side) => side.authenticate(caller));
    } catch (error) {
      const outcome = this.failureOf(error);
      // An error of the backend itself, or of scopes, does not refuse the credential.
      if (outcome.origin !== 'backend' && !lacksScope(outcome)) throw new ExchangeError(outcome);
    }
  }

  follow(
    exchange: Exchange,
    filter: ChangeFilter,
    subscriber: Subscriber,
    acknowledge: (honoured: ChangeFilter) => void,
  ): Promise<Outcome> {
    return this.#carryOut(exchange, async (side) => {
      const wanted = side.subscribe(exchange.caller, filter, subscriber);
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

  warmUp(): void {
    this.#options.eraChoice.warmUp();
  }

  /** See {@link InFlight.drain}. */
  drain(limitMs: number): Promise<void> {
    return this.#inFlight.drain(limitMs);
  }

  async close(): Promise<void> {
    await Promise.all(this.#options.outbounds.map((outbound) => outbound.close()));
  }

  failureOf(error: unknown): ErrorOutcome {
    if (error instanceof ExchangeError) return this.#withoutForeignChallenge(error.outcome);
    if (error instanceof WrongEra) return error.failure;
    this.#options.onFault(error);
    return gatewayError(EXCHANGE_ERRORS.ERAGATE_INTERNAL);
  }

  /** A 401 for the credential of the gateway itself is none that a client can act upon. */
  #withoutForeignChallenge(outcome: ErrorOutcome): ErrorOutcome {
    if (outcome.status !== 401 || this.#options.forwardsCredentials) return outcome;
    const detail = outcome.origin === 'gateway' ? outcome.detail : outcome.message;
    return gatewayError(EXCHANGE_ERRORS.ERAGATE_GATEWAY_CREDENTIAL_REFUSED, { route: this.path }, { detail });
  }
}

/** Whether a credential is good, but not for what was asked (RFC 6750, section 3.1). */
function lacksScope({ status, headers }: ErrorOutcome): boolean {
  return status === 403 && /\berror="?insufficient_scope\b/.test(headers?.['www-authenticate'] ?? '');
}

function isDown(outcome: Outcome): boolean {
  return outcome.type === 'error' && outcome.status !== undefined && outcome.status >= 500;
}
