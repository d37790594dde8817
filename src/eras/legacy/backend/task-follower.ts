import { EXCHANGE_ERRORS, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { gatewayError, type Outcome } from '../../../exchange/outcome.js';
import type { TaskRun } from './task-run.js';

/** Limits of the poll interval that a server may set. */
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 10_000;
/** Limit of the polls in a row that fail. */
const MAX_FAILURES = 3;

/**
 * Polls a task to its end, within the exchange of its call.
 * @throws ExchangeError if the server cannot be asked; the task is then cancelled
 */
export async function followTask(exchange: Exchange, run: TaskRun): Promise<Outcome> {
  let failures = 0;
  while (exchange.cancelled === undefined) {
    try {
      await run.look(exchange.caller);
      failures = 0;
    } catch (error) {
      const temporary = error instanceof ExchangeError && (error.outcome.status ?? 200) >= 500;
      if (!temporary || ++failures >= MAX_FAILURES) {
        void run.end();
        throw error;
      }
    }
    if (run.outcome !== undefined) return run.outcome;
    if (run.state.status === 'cancelled') break;
    await nextPoll(run, exchange.signal);
    if (run.outcome !== undefined) return run.outcome;
  }
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_CANCELLED);
}

/** Resolves after the poll interval, when the state of the task may have changed, or when the call is cancelled. */
function nextPoll(run: TaskRun, signal: AbortSignal): Promise<void> {
  const intervalMs = run.state.pollIntervalMs ?? run.defaultPollMs;
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      run.onNews(undefined);
      resolve();
    };
    const timer = setTimeout(over, Math.min(Math.max(intervalMs, SHORTEST_POLL_MS), LONGEST_POLL_MS));
    run.onNews(over);
    signal.addEventListener('abort', over);
  });
}
