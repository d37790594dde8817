import type { Caller } from '../../../exchange/caller.js';
import { ownerOf, type Principal } from '../../../exchange/credentials.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ErrorOutcome } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import {
  errorRope,
  getMember,
  type JsonNode,
  membersOf,
  parseFrame,
  type RequestFrame,
  Rope,
  requestRope,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import type { InteractiveCall } from './interactive-call.js';
import { type Found, type ParkedCallStore, USED } from './parked-calls.js';
import { writeRefusal } from './refusal.js';
import { callerOf, type ModernRequest, pendingRequestOf } from './request.js';
import { answersDigest, requestDigest } from './request-state.js';

/** Members of the params that a retry has in addition to those of the call. */
const RETRY_MEMBERS: ReadonlyMap<string, undefined> = new Map([
  ['inputResponses', undefined],
  ['requestState', undefined],
]);

/**
 * How to go on with a retry: repeat its call without the members of a retry, send it to the backend that its state is from,
 * or not at all, since it has its response or waits for a parked call.
 */
export type RetryKind = 'repeat' | 'of-backend' | 'handled';

export function isRetry({ bytes, params }: RequestFrame): boolean {
  return params !== undefined && getMember(bytes, params, 'requestState') !== undefined;
}

/** The call of a retry that repeats it. */
export function repeatedCall({ id, method, bytes, params }: RequestFrame): RequestFrame {
  const rest = new Rope();
  writeObject(rest, bytes, params, RETRY_MEMBERS);
  return parseFrame(requestRope(id, method, rest).toBuffer()) as RequestFrame;
}

/** Finds the parked calls that retries belong to (basic/patterns/mrtr, "Basic Workflow"). */
export class Retries {
  readonly #store: ParkedCallStore<InteractiveCall>;

  constructor(store: ParkedCallStore<InteractiveCall>) {
    this.#store = store;
  }

  /** A `requestState` for a retry that repeats the call of an exchange. */
  stateFor({ request, caller }: Exchange): string {
    return this.#store.sealRetry(
      caller.principal,
      requestDigest({
        method: request.method,
        bytes: request.params.bytes,
        params: request.params.node,
        forwarded: caller.forwarded,
      }),
      ownerOf(caller.forwarded.authorization),
    );
  }

  /**
   * Lets a retry continue its parked call, or responds with an error to one that is invalid.
   * @param request one for which {@link isRetry} is true
   */
  async handle(request: ModernRequest): Promise<RetryKind> {
    const { route, call, frame } = request;
    const { bytes } = frame;
    const params = frame.params as JsonNode;
    let found = this.#find(request);
    if (found !== undefined && belongsToOther(found, call.principal)) {
      // Only the backend can verify that a renewed credential belongs to the owner that it names.
      const refusal = await refusedBy(route, callerOf(request));
      if (refusal !== undefined) {
        writeRefusal(call.response, frame.id, refusal);
        return 'handled';
      }
      found = this.#find(request);
    }
    const responses = getMember(bytes, params, 'inputResponses');
    if (found?.kind === 'parked') {
      if (responses !== undefined && responses.kind !== 'object')
        return refuse(request, 'inputResponses must be an object');
      const { forwarded } = call;
      found.parkedCall.call.resume(pendingRequestOf(request), { forwarded, bytes, responses });
      return 'handled';
    }
    if (found?.kind === 'settled') {
      const { settled } = found;
      if (settled.answers !== answersDigest(bytes, responses)) return refuseState(request, USED.reason);
      settled.write(pendingRequestOf(request));
      return 'handled';
    }
    if (found?.kind === 'repeat') {
      const declined = responses === undefined ? undefined : refusedAction(bytes, responses);
      if (declined === undefined) return 'repeat';
      return refuse(request, `the server needs what was answered with ${declined}`);
    }
    if (found?.kind === 'refused') return refuseState(request, found.reason);
    // A state that the gateway has not sealed may be that of a modern backend.
    const era = await route.eraFor(callerOf(request)).catch(ignoreFailure);
    return era === 'modern' ? 'of-backend' : refuse(request, 'Invalid or expired requestState');
  }

  #find({ call, frame }: ModernRequest): Found<InteractiveCall> | undefined {
    const { bytes, method } = frame;
    const params = frame.params as JsonNode;
    const token = stringOf(bytes, getMember(bytes, params, 'requestState'));
    if (token === undefined) return undefined;
    const digest = (): string => requestDigest({ method, bytes, params, forwarded: call.forwarded });
    return this.#store.find(token, call.principal, digest, ownerOf(call.forwarded.authorization));
  }
}

function refuse({ call, frame }: ModernRequest, message: string): 'handled' {
  call.response.end(400, errorRope(frame.id, CODE.invalidParams, message));
  return 'handled';
}

function refuseState(request: ModernRequest, reason: string): 'handled' {
  return refuse(request, `Invalid or expired requestState: ${reason}`);
}

/** Whether a call is that of another credential, which names the same owner. */
function belongsToOther(found: Found<InteractiveCall>, principal: Principal): boolean {
  if (found.kind === 'parked') return found.parkedCall.principal !== principal;
  return found.kind === 'settled' && found.settled.principal !== principal;
}

/** The error with which the backend refuses the credentials of a caller; undefined if it accepts them. */
async function refusedBy(route: RouteService, caller: Caller): Promise<ErrorOutcome | undefined> {
  try {
    await route.authenticate(caller);
    return undefined;
  } catch (error) {
    if (error instanceof ExchangeError) return error.outcome;
    throw error;
  }
}

/** The action of the first answer that declines or cancels. */
function refusedAction(bytes: Buffer, responses: JsonNode): string | undefined {
  for (const { value } of membersOf(bytes, responses)) {
    const action = stringOf(bytes, getMember(bytes, value, 'action'));
    if (action === 'decline' || action === 'cancel') return action;
  }
  return undefined;
}
