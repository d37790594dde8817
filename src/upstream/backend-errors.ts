import type { BackendLabel } from '../exchange/backend-label.js';
import { type DeclaredError, declareErrors } from '../exchange/declare-errors.js';
import { CODE, type ExchangeError, exchangeError } from '../exchange/errors.js';

/** Errors of backends that both eras have: no connection, no JSON-RPC response, a refusal of what the gateway needs. */
export const BACKEND_ERRORS = declareErrors({
  ERAGATE_BACKEND_UNREACHABLE: {
    code: CODE.internal,
    status: 502,
    retryAfterSeconds: 1,
    message: 'Cannot reach the server behind route {route}: no connection; try again later',
    hint: 'Check that the server runs, and that backend.url or backend.command of the route is right; "detail" says what failed.',
  },
  ERAGATE_CONNECTION_LOST: {
    code: CODE.internal,
    status: 502,
    message: 'The connection to the server behind route {route} broke before its response was complete',
    hint: 'Look into the log of the server and of proxies before it; the request may have been carried out.',
  },
  ERAGATE_BACKEND_STALLED: {
    code: CODE.internal,
    status: { legacy: 200, modern: 504 },
    message: 'The server behind route {route} stopped in the middle of its response',
    hint: 'Find out what the server waits for, or raise timeouts.idle of the route.',
  },
  ERAGATE_RESPONSE_TOO_LARGE: {
    code: CODE.internal,
    status: 502,
    message: 'The response of the server behind route {route} is larger than the gateway accepts',
    hint: 'Ask for less at a time, or raise limits.resultBytes.',
  },
  ERAGATE_RESPONSE_UNUSABLE: {
    code: CODE.internal,
    status: 502,
    message: 'The gateway cannot use the response of the server behind route {route}',
    hint: 'Set backend.url to the final address where the server redirects; otherwise "detail" says what is wrong with the response.',
  },
  ERAGATE_BACKEND_TIMEOUT: {
    code: CODE.internal,
    status: 502,
    message:
      'The gateway gave up a request to the server behind route {route}, which did not respond in time',
    hint: 'Find out why the server is slow, or raise timeouts of the route; "detail" names the request.',
  },
  ERAGATE_NO_RESPONSE: {
    code: CODE.internal,
    status: 502,
    message:
      'The server behind route {route} answered HTTP {status} with {type}, where a JSON-RPC response was expected',
    hint: 'Check that backend.url is the MCP endpoint of the server, and that no proxy answers in its place.',
  },
  ERAGATE_BACKEND_HTTP_ERROR: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} answered HTTP {status}, where a JSON-RPC response was expected',
    hint: 'Look into the log of the server; "detail" has the beginning of what it answered.',
  },
  ERAGATE_BACKEND_UNAVAILABLE: {
    code: CODE.internal,
    status: 503,
    message:
      'The server behind route {route} is unavailable (HTTP 503); try again after the time in Retry-After',
    hint: 'Wait until the server is up again; it said itself how long that takes.',
  },
  ERAGATE_BACKEND_REFUSED: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} refused a request of the gateway with {answer}',
    hint: 'The server may have been replaced by one of another era, or is not an MCP server: "detail" has what it answered; "probe" says what it speaks.',
  },
  ERAGATE_NO_COMMON_VERSION: {
    code: CODE.internal,
    status: 502,
    message: 'The gateway and the server behind route {route} have no protocol version in common',
    hint: 'Update the server or the gateway; "detail" has the versions that the server supports.',
  },
  ERAGATE_BACKEND_SESSION_LOST: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} has lost the session that the request needs; send it again',
    hint: 'The server restarted, or a balancer sends requests of one session to several servers: set up sticky sessions.',
  },
});

/**
 * An error of one backend.
 * @param what follows the name of the backend in the log
 */
export function backendFailure(
  { route, name }: BackendLabel,
  declared: DeclaredError<'route'>,
  what: string,
): ExchangeError {
  return exchangeError(declared, { route }, { detail: `${name} ${what}` });
}
