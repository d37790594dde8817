import type { HttpCall } from '../../../downstream/http-call.js';
import { ExchangeError } from '../../../exchange/errors.js';
import type { ErrorOutcome } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import {
  type ErrorFrame,
  getMember,
  type NotificationFrame,
  type RequestId,
  type ResultFrame,
  stringMember,
  textOf,
} from '../../../jsonrpc/index.js';
import type { LegacyClientSession } from './session.js';
import { refuse } from './session-lookup.js';

/** A message of a client that has no response: a notification, or the answer to a server request. */
export type OneWay = NotificationFrame | ResultFrame | ErrorFrame;

/**
 * Handles a message that has no response.
 * @throws ExchangeError if the backend has too many notifications of the client to accept first
 */
export function takeOneWay(session: LegacyClientSession, call: HttpCall, frame: OneWay): void {
  if (frame.type !== 'notification') {
    session.answer(frame, call.forwarded);
    return;
  }
  const { method, bytes, params, root } = frame;
  // The gateway has sent its own to the backend.
  if (method === 'notifications/initialized') return;
  if (method === 'notifications/cancelled') {
    const requestId = params === undefined ? undefined : getMember(bytes, params, 'requestId');
    if (requestId === undefined) return;
    const reason = stringMember(bytes, params, 'reason') ?? 'the client cancelled';
    session.inFlight(textOf(bytes, requestId) as RequestId)?.cancel(reason);
    return;
  }
  session.binding?.notify(method, bytes.subarray(root.start, root.end));
}

/**
 * Tries the credentials that an answer comes with before it reaches the server. Its POST is the last response that can carry a
 * challenge; the server request stays open for an answer with other credentials.
 * @returns false if the backend refused them, and a response was sent
 */
export async function acceptsCredentials(
  route: RouteService,
  call: HttpCall,
  session: LegacyClientSession,
  frame: OneWay,
): Promise<boolean> {
  if (frame.type === 'notification' || call.forwarded.authorization === undefined) return true;
  if (!session.expects(frame)) return true;
  try {
    await route.authenticate(session.caller(call.forwarded));
    return true;
  } catch (error) {
    // Other errors are no refusal of the credentials, so the answer is sent.
    if (error instanceof ExchangeError && error.outcome.status !== 401 && !isChallenge(error.outcome))
      return true;
    refuse(call, undefined, error);
    return false;
  }
}

/** Whether an error is about the credential of the request. */
export function isChallenge({ status, headers }: ErrorOutcome): boolean {
  return (status === 401 || status === 403) && headers?.['www-authenticate'] !== undefined;
}
