import { type DeclaredError, declareErrors } from './declare-errors.js';
import {
  type ErrorArguments,
  type ErrorOutcome,
  type GatewayErrorOutcome,
  gatewayError,
  ownError,
} from './outcome.js';

/** JSON-RPC 2.0 error codes, and the range that MCP's SDKs use for their own. */
export const CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** SDKs of the legacy era: anything wrong with the HTTP request. */
  server: -32000,
  /** SDKs of the legacy era: session not found, and request timed out. */
  notFoundOrTimeout: -32001,
} as const;

/** Errors of exchanges, routes and limits, and what HTTP statuses of a backend mean to the client. */
export const EXCHANGE_ERRORS = declareErrors({
  ERAGATE_INTERNAL: {
    code: CODE.internal,
    status: { legacy: 200, modern: 500 },
    message: 'Internal error of the gateway',
    hint: 'A fault of the gateway: report it, with the log line "fault of the gateway".',
  },
  ERAGATE_CANCELLED: {
    code: CODE.internal,
    status: 200,
    message: 'Request cancelled: {reason}',
    hint: 'Nothing to do: the client cancelled or disconnected, nobody answered the server, or the gateway shut down.',
  },
  ERAGATE_TIMEOUT: {
    code: { legacy: CODE.notFoundOrTimeout, modern: CODE.internal },
    status: { legacy: 200, modern: 504 },
    message: 'Request timed out: the server behind route {route} gave no answer within {ms} ms',
    hint: 'Find out what the server was doing, or raise timeouts.total of the route.',
  },
  ERAGATE_SHUTTING_DOWN: {
    code: CODE.internal,
    status: 503,
    retryAfterSeconds: 1,
    message: 'The gateway is shutting down; try again',
    hint: 'Try again: another replica, or the gateway once it has restarted, serves the request.',
  },
  ERAGATE_REQUEST_LIMIT: {
    code: CODE.internal,
    status: 503,
    retryAfterSeconds: 1,
    message:
      'Too many at once: limit of {limit} requests in flight on route {route} reached; try again later',
    hint: 'Look for what keeps requests open, or raise limits.exchanges.',
  },
  ERAGATE_REQUEST_SHARE: {
    code: CODE.internal,
    status: 503,
    retryAfterSeconds: 1,
    message:
      'Too many at once: limit of {limit} requests of one caller in flight on route {route} reached; try again later',
    hint: 'One caller may use half of limits.exchanges, and those without a credential three quarters.',
  },
  ERAGATE_SUBSCRIPTION_LIMIT: {
    code: CODE.internal,
    status: 503,
    retryAfterSeconds: 1,
    message:
      'Too many at once: limit of {limit} open subscriptions on route {route} reached; try again later',
    hint: 'Close subscriptions that nobody needs, or raise limits.listeners.',
  },
  ERAGATE_QUOTA: {
    code: CODE.internal,
    status: 503,
    retryAfterSeconds: 1,
    message: 'Too many at once: limit of {limit} {what} reached; try again later',
    hint: 'Answer or cancel calls and tasks that wait, or raise the limits under questions, tasks and limits.',
  },
  ERAGATE_METHOD_NOT_FOUND: {
    code: CODE.methodNotFound,
    status: { legacy: 200, modern: 404 },
    message: 'Method not found: {method}',
    hint: 'The method does not exist in the era of the client or cannot be had from this server: ask for what it declares.',
  },
  ERAGATE_INVALID_PARAMS: {
    code: CODE.invalidParams,
    status: { legacy: 200, modern: 400 },
    message: 'Invalid params: {problem}',
    hint: 'Correct the params of the request as the message says.',
  },
  ERAGATE_TASKS_UNDECLARED: {
    code: -32021,
    status: { legacy: 200, modern: 400 },
    message: 'The client did not declare the tasks extension, which the request needs',
    hint: 'Declare the extension io.modelcontextprotocol/tasks in the capabilities of the client.',
  },
  ERAGATE_TASK_NOT_FOUND: {
    code: CODE.invalidParams,
    status: 200,
    message: 'Failed to retrieve task: Task not found',
    hint: 'The task has expired, is of another route or principal, or was kept by a gateway that restarted: make the call again.',
  },
  ERAGATE_TASK_CANCELLED: {
    code: CODE.internal,
    status: 200,
    message: 'The task was cancelled',
    hint: 'Nothing to do: the client or the server cancelled the task.',
  },
  ERAGATE_TASK_OVER: {
    code: CODE.invalidParams,
    status: 200,
    message: 'Cannot cancel task: it is {status} already',
    hint: 'Nothing to do: a task that has ended cannot be cancelled.',
  },
  ERAGATE_UNAUTHORIZED: {
    code: CODE.server,
    status: 401,
    message:
      'Unauthorized: the server behind route {route} does not accept the request without another credential',
    hint: 'Log in again as the WWW-Authenticate header says, or send a valid Authorization header.',
  },
  ERAGATE_FORBIDDEN: {
    code: CODE.server,
    status: 403,
    message: 'Forbidden: the server behind route {route} does not allow the request',
    hint: 'Use a credential with more rights; the WWW-Authenticate header may name the missing scope.',
  },
  ERAGATE_RATE_LIMITED: {
    code: CODE.server,
    status: 429,
    message: 'Too Many Requests: the server behind route {route} limits the rate; try again later',
    hint: 'Wait as long as Retry-After says. The limit is one of the server or of a proxy in front of it.',
  },
  ERAGATE_HOST_REFUSED: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} does not accept the Host header of the gateway',
    hint: 'Set backend.hostHeader to a name that the server accepts, or allow the name in the server.',
  },
  ERAGATE_GATEWAY_CREDENTIAL_REFUSED: {
    code: CODE.internal,
    status: 502,
    message: 'The server behind route {route} refuses the credential that the gateway has for it',
    hint: 'Renew the credential under backend.headers of the route; clients cannot replace it.',
  },
});

/**
 * Ends an exchange with an error for the client. Its own message is for the log: the detail, where the error has one.
 */
export class ExchangeError<Outcome extends ErrorOutcome = ErrorOutcome> extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    super((outcome.origin === 'gateway' ? outcome.detail : undefined) ?? outcome.message);
    this.name = 'ExchangeError';
    this.outcome = outcome;
  }
}

/** An error that the gateway makes itself, to be thrown. */
export function exchangeError<Placeholder extends string>(
  declared: DeclaredError<Placeholder>,
  ...args: ErrorArguments<Placeholder>
): ExchangeError<GatewayErrorOutcome> {
  return new ExchangeError(gatewayError(declared, ...args));
}

/** The client cannot be asked: it did not declare the capability, has no stream, or has gone. */
export class ServerRequestRefused extends Error {
  readonly code: number;
  constructor(message: string, code: number = CODE.methodNotFound) {
    super(message);
    this.name = 'ServerRequestRefused';
    this.code = code;
  }
}

/** The server took its question back: it waits for no answer, and is to get none (basic/utilities/cancellation). */
export class ServerRequestWithdrawn extends Error {
  constructor() {
    super('the server took the question back');
    this.name = 'ServerRequestWithdrawn';
  }
}

/** The backend cannot be reached, or answered something that is not MCP: nobody's request is at fault. */
export function badGateway(what: string, status = 502): ExchangeError {
  return new ExchangeError(ownError({ code: CODE.internal, message: what, status }));
}

/** A limit of the gateway was reached; the client may try again later. */
export function overloaded(what: string, retryAfterSeconds = 1): ExchangeError {
  return new ExchangeError(
    ownError({
      code: CODE.internal,
      message: what,
      status: 503,
      headers: { 'retry-after': String(retryAfterSeconds) },
    }),
  );
}

/** The client has gone or has cancelled: nobody reads the outcome. */
export function cancelled(reason: string): ExchangeError {
  return exchangeError(EXCHANGE_ERRORS.ERAGATE_CANCELLED, { reason });
}
