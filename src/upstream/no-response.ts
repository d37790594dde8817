import { isEventStream } from '../body/media-type.js';
import type { BackendLabel } from '../exchange/backend-label.js';
import { type ExchangeError, exchangeError } from '../exchange/errors.js';
import type { GatewayErrorOutcome } from '../exchange/outcome.js';
import { BACKEND_ERRORS } from './backend-errors.js';
import type { TransportFailure } from './errors.js';
import type { ResponseHeaders } from './response-headers.js';
import type { RpcReply } from './rpc-call.js';

type Answered = Exclude<RpcReply, { readonly kind: 'failed' }>;
type Unanswered = Exclude<RpcReply, { readonly kind: 'response' }>;

/** As much of a body as the log shows. */
const MAX_SAID_CHARS = 200;
const UNAVAILABLE = 503;

const FAILURES = {
  unreachable: [BACKEND_ERRORS.ERAGATE_BACKEND_UNREACHABLE, 'cannot reach'],
  unanswered: [BACKEND_ERRORS.ERAGATE_CONNECTION_LOST, 'connection lost to'],
  broken: [BACKEND_ERRORS.ERAGATE_CONNECTION_LOST, 'connection lost to'],
  stalled: [BACKEND_ERRORS.ERAGATE_BACKEND_STALLED, 'timed out on'],
  'too-large': [BACKEND_ERRORS.ERAGATE_RESPONSE_TOO_LARGE, 'answer too large from'],
  unusable: [BACKEND_ERRORS.ERAGATE_RESPONSE_UNUSABLE, 'cannot use the answer of'],
  aborted: [BACKEND_ERRORS.ERAGATE_BACKEND_TIMEOUT, 'gave up on'],
} as const satisfies Record<TransportFailure, unknown>;

/**
 * The error for a request that got no JSON-RPC response.
 * @throws TypeError for a reply that is one
 */
export function noResponseError(
  { route, name }: BackendLabel,
  reply: RpcReply,
): ExchangeError<GatewayErrorOutcome> {
  if (reply.kind === 'response') throw new TypeError('the reply has a response');
  const detail = noResponseDetail(name, reply);
  if (reply.kind === 'failed') {
    const [declared] = FAILURES[reply.error.failure];
    return exchangeError(declared, { route }, { detail });
  }
  const { status, headers } = reply;
  if (status < 400) {
    return isEventStream(headers['content-type'])
      ? exchangeError(BACKEND_ERRORS.ERAGATE_CONNECTION_LOST, { route }, { detail })
      : exchangeError(
          BACKEND_ERRORS.ERAGATE_NO_RESPONSE,
          { route, status, type: typeOf(headers) },
          { detail },
        );
  }
  const retryAfter = headers['retry-after'];
  return status === UNAVAILABLE && typeof retryAfter === 'string'
    ? exchangeError(
        BACKEND_ERRORS.ERAGATE_BACKEND_UNAVAILABLE,
        { route },
        { detail, headers: { 'retry-after': retryAfter } },
      )
    : exchangeError(BACKEND_ERRORS.ERAGATE_BACKEND_HTTP_ERROR, { route, status }, { detail });
}

/** What happened instead of a JSON-RPC response, for the log. */
function noResponseDetail(name: string, reply: Unanswered): string {
  if (reply.kind === 'failed') {
    const [, what] = FAILURES[reply.error.failure];
    return `${what} ${name}: ${reply.error.message}`;
  }
  const { status, headers, text } = reply;
  if (status >= 400) return httpDetail(name, status, text);
  const type = headers['content-type'] ?? 'no Content-Type';
  // A stream may have been cut off; any other body is complete.
  return isEventStream(headers['content-type'])
    ? `connection to ${name} lost: its answer ended without a response`
    : `cannot use the answer of ${name}: HTTP ${status} with ${type} holds no JSON-RPC response`;
}

/** The media type of a body, which is safe to show to clients. */
function typeOf(headers: ResponseHeaders): string {
  const type = headers['content-type'];
  if (typeof type !== 'string') return 'no Content-Type';
  return /^\s*([\w.+-]+\/[\w.+-]+)\s*(;|$)/.exec(type)?.[1] ?? 'an unreadable Content-Type';
}

/** What a refusal says, as far as clients may see it: the HTTP status and the JSON-RPC error, but no other text. */
export function answerOf(reply: Answered): string {
  const status = `HTTP ${reply.status}`;
  if (reply.kind === 'no-response' || reply.frame.type === 'result') return status;
  const said = `${reply.frame.code} ${reply.frame.message}`.slice(0, MAX_SAID_CHARS);
  return reply.status < 400 ? said : `${status}: ${said}`;
}

/** An HTTP response that is no result, for the log. */
export function httpDetail(name: string, status: number, text: string): string {
  const said = text.trim().slice(0, MAX_SAID_CHARS);
  return `${name} answered HTTP ${status}${said === '' ? '' : `: ${said}`}`;
}
