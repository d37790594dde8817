import type { Logger } from 'pino';
import type { Exchange, ExchangeRequest } from '../exchange/exchange.js';
import type { Outcome } from '../exchange/outcome.js';
import { getMember, quoted } from '../jsonrpc/index.js';
import { renderedLines } from './rendered.js';

const CELL: Readonly<Record<string, string>> = { legacy: 'L', modern: 'M' };
const LONGEST_NAME = 200;

/** The one line of each exchange of a route. */
export class ExchangeLog {
  readonly #log: Logger;
  readonly #write: (members: string) => void;
  readonly #route: string;

  constructor(log: Logger, route: string) {
    this.#log = log;
    this.#write = renderedLines(log);
    this.#route = `"route":${quoted(route)}`;
  }

  /**
   * Writes what was asked, in which cell, how it ended, how long it took. Arguments, content and credentials are no
   * part of it.
   */
  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void {
    if (!this.#log.isLevelEnabled('info')) return;
    const { request, caller, notes, startedAt } = exchange;
    const { backendEra, backendMs, session, cache } = notes;
    const cell = `${CELL[caller.era]}${backendEra === undefined ? '-' : CELL[backendEra]}`;
    let line = `${this.#route},"cell":"${cell}","method":${quoted(request.method)}`;
    const name = nameOf(request);
    if (name !== undefined) line += `,"name":${quoted(name.slice(0, LONGEST_NAME))}`;
    line += `,"status":${httpStatus},"outcome":${outcomeOf(outcome, exchange)}`;
    line += `,"ms":${rounded(performance.now() - startedAt)}`;
    if (backendMs !== undefined) line += `,"backendMs":${rounded(backendMs)}`;
    if (session !== undefined) line += `,"session":"${session}"`;
    if (cache !== undefined) line += `,"cache":"${cache}"`;
    if (outcome.type === 'error' && outcome.origin === 'gateway')
      line += `,"error":${quoted(outcome.message)}`;
    this.#write(line);
  }
}

/** Whoever has the name of a task may have the task, too (extension, "Security Considerations"). */
function nameOf({ method, name }: ExchangeRequest): string | undefined {
  return method.startsWith('tasks/') ? undefined : name;
}

/** JSON text of how an exchange ended: a word, or the code of its error. */
function outcomeOf(outcome: Outcome, exchange: Exchange): string | number {
  if (exchange.cancelled !== undefined) return exchange.timedOut ? '"timeout"' : '"cancelled"';
  if (outcome.type === 'error') return outcome.code;
  return getMember(outcome.bytes, outcome.node, 'isError')?.kind === 'true' ? '"isError"' : '"ok"';
}

/** A duration with two digits after the point. Two short integers are written in less time than one fraction. */
function rounded(ms: number): string {
  const hundredths = Math.round(ms * 100);
  const rest = hundredths % 100;
  return `${(hundredths - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}
