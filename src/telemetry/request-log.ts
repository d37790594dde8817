import type { Logger } from 'pino';
import type { HttpRequest, ResponseSummary, Stage } from '../http/pipeline.js';

const MAX_PATH_CHARS = 200;
const MAX_REASON_CHARS = 300;

/**
 * One line for each HTTP request that was refused: at `warn` where the gateway or the backend failed (5xx), else at `info`.
 * Refusals that are outcomes of exchanges are in the line of the exchange. All other requests have a line at `debug`.
 */
export class RequestLog implements Stage {
  readonly #log: Logger;
  /** The ids of requests whose refusal is in the line of an exchange, until their responses are over. */
  readonly #exchanges = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The line of an exchange tells of a response with this status. */
  onExchange(requestId: string | undefined, status: number): void {
    if (requestId !== undefined && status >= 400) this.#exchanges.add(requestId);
  }

  onResponse(request: HttpRequest, { status, complete }: ResponseSummary): void {
    const { id, message, path, startedAt } = request;
    const told = this.#exchanges.delete(id);
    const refused = status >= 400 && !told;
    const level = !refused ? 'debug' : status >= 500 ? 'warn' : 'info';
    if (!this.#log.isLevelEnabled(level)) return;
    const line = {
      requestId: id,
      httpMethod: message?.method,
      path: path?.slice(0, MAX_PATH_CHARS),
      status,
      complete,
      ms: Math.round((performance.now() - startedAt) * 100) / 100,
      reason: refused ? reasonOf(request) : undefined,
    };
    this.#log[level](line, refused ? 'request refused' : 'request');
  }
}

/** The message of the error that the client got. */
function reasonOf({ refusal }: HttpRequest): string | undefined {
  if (refusal === undefined) return undefined;
  const { error } = JSON.parse(refusal.toBuffer().toString()) as { error?: { message?: string } };
  return error?.message?.slice(0, MAX_REASON_CHARS);
}
