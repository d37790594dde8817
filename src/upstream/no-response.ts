import { isEventStream } from '../body/media-type.js';
import { badGateway, unavailable, unreachable } from '../exchange/errors.js';
import type { ResponseHeaders } from './response-headers.js';
import type { RpcReply } from './rpc-call.js';

/** The error for a request that got no JSON-RPC response. */
export function noResponseError(backend: string, reply: RpcReply): Error {
  if (reply.kind === 'failed') {
    const { failure, message } = reply.error;
    const what = `${PROBLEM[failure]} ${backend}: ${message}`;
    return failure === 'unreachable'
      ? unreachable(what)
      : badGateway(what, failure === 'stalled' ? 504 : 502);
  }
  if (reply.kind === 'response') throw new TypeError('the reply has a response');
  if (reply.status < 400) return badGateway(unanswered(backend, reply.status, reply.headers));
  const said = reply.text.trim().slice(0, 200);
  const what = `${backend} answered HTTP ${reply.status}${said === '' ? '' : `: ${said}`}`;
  const retryAfter = reply.headers['retry-after'];
  return reply.status === UNAVAILABLE && typeof retryAfter === 'string'
    ? unavailable(what, retryAfter)
    : badGateway(what);
}

const UNAVAILABLE = 503;

/** A stream may have been cut off; any other body came whole and was no response. */
function unanswered(backend: string, status: number, headers: ResponseHeaders): string {
  const type = headers['content-type'] ?? 'no Content-Type';
  return isEventStream(headers['content-type'])
    ? `connection to ${backend} lost: its answer ended without a response`
    : `cannot use the answer of ${backend}: HTTP ${status} with ${type} holds no JSON-RPC response`;
}

const PROBLEM = {
  unreachable: 'cannot reach',
  unanswered: 'connection lost to',
  broken: 'connection lost to',
  stalled: 'timed out on',
  'too-large': 'answer too large from',
  unusable: 'cannot use the answer of',
  aborted: 'gave up on',
} as const;
