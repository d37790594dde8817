import type { Logger } from 'pino';
import type { Exchange, ExchangeRequest } from '../exchange/exchange.js';
import type { Outcome } from '../exchange/outcome.js';
import type { EraName } from '../exchange/revision.js';
import { getMember } from '../jsonrpc/index.js';

const LETTER: Readonly<Record<EraName, string>> = { legacy: 'L', modern: 'M' };
const MAX_NAME_CHARS = 200;

/** The one log line of each exchange on a route. */
export class ExchangeLog {
  readonly #log: Logger;
  readonly #route: string;
  readonly #onRecorded: (requestId: string | undefined, httpStatus: number) => void;

  /** @param onRecorded notified of each exchange that has its line */
  constructor(
    log: Logger,
    route: string,
    onRecorded: (requestId: string | undefined, httpStatus: number) => void = () => {},
  ) {
    this.#log = log;
    this.#route = route;
    this.#onRecorded = onRecorded;
  }

  /**
   * Logs the id of the HTTP request, the request's method and name, the cell, the outcome and the times. Arguments,
   * content and credentials are never logged. What the client may not see of a failing backend is in a line of level
   * `warn`, as is each response of the gateway's own with a status from 500.
   */
  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void {
    const error = outcome.type === 'error' && outcome.origin === 'gateway' ? outcome : undefined;
    const level = error !== undefined && (error.detail !== undefined || httpStatus >= 500) ? 'warn' : 'info';
    this.#onRecorded(exchange.notes.requestId, httpStatus);
    if (!this.#log.isLevelEnabled(level)) return;
    const { request, caller, notes, startedAt } = exchange;
    const { backendEra, backendMs, session, cache } = notes;
    this.#log[level]({
      requestId: notes.requestId,
      route: this.#route,
      cell: `${LETTER[caller.era]}${backendEra === undefined ? '-' : LETTER[backendEra]}`,
      method: request.method,
      name: nameOf(request),
      status: httpStatus,
      outcome: outcomeOf(outcome, exchange),
      ms: rounded(performance.now() - startedAt),
      backendMs: backendMs === undefined ? undefined : rounded(backendMs),
      session,
      cache,
      error: error?.declared?.name ?? error?.message,
      detail: error?.detail,
      hint: error?.detail === undefined ? undefined : error.declared?.hint,
    });
  }
}

/** A task's name is left out: it gives access to the task (tasks extension, "Security Considerations"). */
function nameOf({ method, name }: ExchangeRequest): string | undefined {
  return method.startsWith('tasks/') ? undefined : name?.slice(0, MAX_NAME_CHARS);
}

/** How an exchange ended: a word, or the code of its error. */
function outcomeOf(outcome: Outcome, exchange: Exchange): string | number {
  if (exchange.cancelled !== undefined) return exchange.timedOut ? 'timeout' : 'cancelled';
  if (outcome.type === 'error') return outcome.code;
  return getMember(outcome.bytes, outcome.node, 'isError')?.kind === 'true' ? 'isError' : 'ok';
}

/** Milliseconds with two digits after the point. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
