import type { Logger } from 'pino';
import type { HttpRequest, ResponseSummary, Stage } from '../http/pipeline.js';

const MAX_PATH_CHARS = 200;

/** One debug line for each HTTP request, whether it became an exchange or not. */
export class RequestLog implements Stage {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  onResponse({ id, message, path, startedAt }: HttpRequest, { status, complete }: ResponseSummary): void {
    const line = {
      requestId: id,
      httpMethod: message?.method,
      path: path?.slice(0, MAX_PATH_CHARS),
      status,
      complete,
      ms: Math.round((performance.now() - startedAt) * 100) / 100,
    };
    this.#log.debug(line, 'request');
  }
}
