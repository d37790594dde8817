import type { HttpCall } from '../../../downstream/http-call.js';
import type { Caller } from '../../../exchange/caller.js';
import type { ExchangeRequest } from '../../../exchange/exchange.js';
import type { RouteService } from '../../../exchange/route-service.js';
import type { RequestFrame } from '../../../jsonrpc/index.js';
import { ENVELOPE_KEYS } from '../wire/names.js';
import type { Envelope } from './envelope.js';
import type { PendingRequest } from './pending-requests.js';

/** A valid request of a modern client. */
export interface ModernRequest {
  readonly route: RouteService;
  readonly call: HttpCall;
  readonly frame: RequestFrame;
  readonly envelope: Envelope;
}

export function callerOf({ call, envelope: { sender } }: ModernRequest): Caller {
  return {
    era: 'modern',
    revision: sender.version,
    principal: call.principal,
    clientInfo: sender.clientInfo,
    capabilities: sender.capabilities,
    neutralCapabilities: sender.capabilities,
    logLevel: sender.logLevel,
    forwarded: call.forwarded,
    session: undefined,
  };
}

/** @param resumes whether the request has a `requestState` of the backend's own */
export function exchangeRequestOf(
  { call, frame, envelope }: ModernRequest,
  { resumes }: { resumes: boolean },
): ExchangeRequest {
  return {
    id: frame.id,
    method: frame.method,
    params: {
      bytes: frame.bytes,
      node: frame.params,
      meta: envelope.meta,
      envelopeKeys: ENVELOPE_KEYS,
      bareEnvelope: envelope.bare,
    },
    name: envelope.name,
    progressToken: envelope.progressToken,
    resumes,
    raw: rawOf(frame),
    paramHeaders: call.headers.params,
  };
}

export function pendingRequestOf({ call, frame, envelope }: ModernRequest): PendingRequest {
  return {
    id: frame.id,
    response: call.response,
    progressToken: envelope.progressToken,
    logLevel: envelope.sender.logLevel,
  };
}

/** The bytes of a request with the four members of JSON-RPC only, which can be forwarded unchanged; else undefined. */
function rawOf({ bytes, root }: RequestFrame): Buffer | undefined {
  return root.members?.length === 4 && root.start === 0 && root.end === bytes.length ? bytes : undefined;
}
