/** The errors of the HTTP layer: of requests that reach no era. */

import type { ClientResponse } from '../downstream/response.js';
import { CODE } from '../exchange/errors.js';
import { errorRope, type RequestId } from '../jsonrpc/index.js';

/** Why a request goes no further: the JSON-RPC error of its response, and the HTTP status. */
export interface Refusal {
  readonly status: number;
  /** JSON-RPC error code. */
  readonly code: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Of a header or a path as a message shows it. */
const MAX_SHOWN_CHARS = 200;

/** What the gateway itself got wrong; the log has the cause. */
export const INTERNAL: Refusal = {
  status: 500,
  code: CODE.internal,
  message: 'Internal error of the gateway',
};

export const SHUTTING_DOWN: Refusal = refusal(503, 'The gateway is shutting down', {
  connection: 'close',
  'retry-after': '1',
});

export const HOST_MISSING: Refusal = refusal(400, 'Bad Request: the Host header is missing', {
  connection: 'close',
});

export const HOST_MALFORMED: Refusal = refusal(400, 'Bad Request: Host is missing or malformed');

export const UNSUPPORTED_EXPECTATION: Refusal = refusal(
  417,
  'Expectation Failed: only 100-continue is supported',
);

export const UNSUPPORTED_MEDIA_TYPE: Refusal = refusal(
  415,
  'Unsupported Media Type: Content-Type must be application/json',
);

export const NO_METADATA: Refusal = refusal(404, 'Not Found: the backend has no protected resource metadata');

export const METADATA_UNAVAILABLE: Refusal = refusal(
  502,
  'Bad Gateway: the metadata of the backend cannot be read',
);

export const MISPLACED_BATCH: Refusal = {
  status: 400,
  code: CODE.invalidRequest,
  message: 'Invalid Request: batches exist in 2025-03-26 alone',
};

/** @param key of the configuration that would allow it */
export function forbidden(header: 'Origin' | 'Host', value: string, key: string): Refusal {
  return refusal(403, `Forbidden: ${header} ${shown(value)} is not allowed; see ${key}`);
}

/** @param allow methods that the path has */
export function methodNotAllowed(method: string | undefined, allow: string): Refusal {
  return refusal(405, `Method Not Allowed: ${method}`, { allow });
}

/** @param url path and query; the path is shown because some clients add to the one that they are given */
export function notFound(url: string): Refusal {
  return refusal(404, `Not Found: no route of the gateway has the path ${shown(url).split('?')[0]}`);
}

/** @param path of a route that does not serve HTTP+SSE */
export function noLegacySse(path: string): Refusal {
  return refusal(
    404,
    `Not Found: the route ${shown(path)} does not serve HTTP+SSE (legacySse is not set); use Streamable HTTP at ${shown(path)}`,
  );
}

/** What the server refused before a route was found, in the server's words. */
export function refusal(status: number, message: string, headers: Refusal['headers'] = {}): Refusal {
  return { status, code: CODE.server, message, headers };
}

/** @param id of the request, where it has been read */
export function endRefused(
  response: ClientResponse,
  { status, code, message, headers }: Refusal,
  id?: RequestId,
): void {
  response.end(status, errorRope(id, code, message), headers);
}

function shown(text: string): string {
  return text.slice(0, MAX_SHOWN_CHARS);
}
