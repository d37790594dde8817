import type { Logger } from 'pino';
import type { Exchange, ExchangeRequest } from '../exchange/exchange.js';
import type { Outcome } from '../exchange/outcome.js';
import { getMember } from '../jsonrpc/index.js';

const CELL: Readonly<Record<string, string>> = { legacy: 'L', modern: 'M' };
const LONGEST_NAME = 200;

/**
 * Writes the one line of an exchange: what was asked, in which cell, how it ended, how long it took. Arguments,
 * content and credentials are no part of it.
 */
export function logExchange(
  log: Logger,
  route: string,
  exchange: Exchange,
  httpStatus: number,
  outcome: Outcome,
): void {
  if (!log.isLevelEnabled('info')) return;
  const { request, caller, notes, startedAt } = exchange;
  log.info({
    route,
    cell: `${CELL[caller.era]}${notes.backendEra === undefined ? '-' : CELL[notes.backendEra]}`,
    method: request.method,
    name: nameOf(request)?.slice(0, LONGEST_NAME),
    status: httpStatus,
    outcome: outcomeOf(outcome, exchange),
    ms: round(performance.now() - startedAt),
    backendMs: notes.backendMs === undefined ? undefined : round(notes.backendMs),
    session: notes.session,
    cache: notes.cache,
    error: outcome.type === 'error' && outcome.origin === 'gateway' ? outcome.message : undefined,
  });
}

/** Whoever has the name of a task may have the task, too (extension, "Security Considerations"). */
function nameOf({ method, name }: ExchangeRequest): string | undefined {
  return method.startsWith('tasks/') ? undefined : name;
}

function outcomeOf(outcome: Outcome, exchange: Exchange): string | number {
  if (exchange.cancelled !== undefined) return exchange.timedOut ? 'timeout' : 'cancelled';
  if (outcome.type === 'error') return outcome.code;
  return getMember(outcome.bytes, outcome.node, 'isError')?.kind === 'true' ? 'isError' : 'ok';
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
