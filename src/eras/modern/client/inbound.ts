import type { HttpCall } from '../../../downstream/http-call.js';
import type { ClientResponse } from '../../../downstream/response.js';
import { ownerOf } from '../../../exchange/digest.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange, ExchangeRequest } from '../../../exchange/exchange.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import {
  type ErrorFields,
  type ErrorOutcome,
  type Outcome,
  ownError,
  ownResult,
} from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { declaresTasks, tasksUndeclared } from '../../../exchange/tasks.js';
import type { Caller, EraName } from '../../../exchange/types.js';
import {
  type Batch,
  errorRope,
  type Frame,
  FrameError,
  getMember,
  type JsonNode,
  membersOf,
  parseFrame,
  type RequestFrame,
  Rope,
  requestRope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import type { Inbound } from '../../era.js';
import { ENVELOPE_KEYS, META, MODERN_VERSION, MODERN_VERSIONS } from '../wire/names.js';
import { type Envelope, EnvelopeReader } from './envelope.js';
import { InteractiveCall, type Waiter } from './interactive-call.js';
import { ListedTools } from './listed-tools.js';
import { namesTasks, requestedFilter } from './listen.js';
import { writeOutcome } from './outcome.js';
import { ParkedCallStore, type ParkingOptions } from './parked-calls.js';
import { headerMismatch, type Refusal } from './refusal.js';
import { requestDigest } from './request-state.js';
import { listenEnd, SubscriptionStream } from './subscription-stream.js';
import { TaskBoard, type TaskBoardOptions } from './tasks.js';

const LISTEN = 'subscriptions/listen';
const DISCOVER = 'server/discover';

/** Members of the params that a retry has beside those of the call. */
const ROUND_MEMBERS: ReadonlyMap<string, undefined> = new Map([
  ['inputResponses', undefined],
  ['requestState', undefined],
]);

/**
 * What a request proves to be: a call, a call that is to be begun again, a retry that the backend has to judge, or one
 * that has been dealt with.
 */
type RequestKind = 'new' | 'again' | 'resumes' | 'answered';

/** The modern era toward clients: every POST tells all that there is to know about its sender. */
export class ModernInbound implements Inbound {
  readonly #store: ParkedCallStore<InteractiveCall>;
  readonly #tasks: TaskBoard;
  readonly #envelopes = new EnvelopeReader();
  readonly #listed = new ListedTools();

  constructor(parking: ParkingOptions, tasks: TaskBoardOptions) {
    this.#store = new ParkedCallStore(parking);
    this.#tasks = new TaskBoard(tasks);
  }

  /**
   * A message is of this era if its `_meta` says so. One that says nothing is, if its version header does: it lacks
   * what this era demands, and is told so.
   */
  claimsPost(call: HttpCall, body: Frame | Batch): boolean {
    if (body.type === 'batch')
      return body.items.some((item) => !(item instanceof FrameError) && claims(item)) || namesModern(call);
    return namesModern(call) || claims(body) || (body.type === 'request' && body.method === DISCOVER);
  }

  post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void> {
    if (body.type === 'request') return this.#request(route, call, body);
    // The revision has no notifications over HTTP; what comes is taken and dropped.
    if (body.type === 'notification') call.response.endEmpty(202);
    else {
      const message = `Invalid Request: ${MODERN_VERSION} has requests and notifications only`;
      call.response.end(400, errorRope(undefined, CODE.invalidRequest, message));
    }
    return Promise.resolve();
  }

  claimsOther(call: HttpCall): boolean {
    return namesModern(call);
  }

  get(_route: RouteService, call: HttpCall): void {
    methodNotAllowed(call);
  }

  async delete(_route: RouteService, call: HttpCall): Promise<void> {
    methodNotAllowed(call);
  }

  async drain(): Promise<void> {
    await this.#tasks.close();
  }

  async close(): Promise<void> {
    await this.#tasks.close();
  }

  /** What a request says of its sender, checked as far as it can be without the backend. */
  #read(route: RouteService, call: HttpCall, frame: RequestFrame): Envelope | Refusal {
    const envelope = this.#envelopes.read(frame, call.headers);
    if ('code' in envelope) return envelope;
    const problem = this.#listed.problemOf(route.path, call, frame, envelope.name);
    return problem === undefined ? envelope : headerMismatch(problem);
  }

  /** Answers one request; never throws. */
  async #request(route: RouteService, call: HttpCall, frame: RequestFrame): Promise<void> {
    const envelope = this.#read(route, call, frame);
    if ('code' in envelope) {
      refuse(call.response, frame, envelope);
      return;
    }
    let kind: RequestKind = 'new';
    if (bringsState(frame)) {
      try {
        kind = await this.#kindOf(route, call, frame, envelope);
      } catch (error) {
        refuse(call.response, frame, route.failureOf(error));
        return;
      }
    }
    if (kind === 'answered') return;
    if (kind === 'again') {
      await this.#request(route, call, withoutRound(frame));
      return;
    }
    const interactive = this.#begin(route, call, frame, envelope, kind);
    const { exchange } = interactive;
    let outcome: Outcome;
    try {
      outcome = await this.#outcome(route, call, frame, exchange);
    } catch (error) {
      outcome = route.failureOf(error);
    }
    // A list that is served again was read when it came.
    const fresh = exchange.notes.cache === undefined;
    if (fresh && outcome.type === 'result' && frame.method === 'tools/list')
      this.#listed.learn(route.path, call.principal, outcome);
    if (frame.method === LISTEN && exchange.cancelled !== undefined) {
      // The gateway ends the subscription, and says so in the proper way; a client that has left reads none of it.
      call.response.end(200, listenEnd(frame.id));
    } else interactive.finish(outcome);
    route.record(exchange, call.response.status, outcome);
  }

  /** Finds out what a request is, and deals with it if it brings a state back (basic/patterns/mrtr, "Basic Workflow"). */
  async #kindOf(
    route: RouteService,
    call: HttpCall,
    frame: RequestFrame,
    envelope: Envelope,
  ): Promise<RequestKind> {
    const { bytes, params, method } = frame;
    const state = params === undefined ? undefined : getMember(bytes, params, 'requestState');
    if (params === undefined || state === undefined) return 'new';
    const token = stringOf(bytes, state);
    const digest = (): string => requestDigest(method, bytes, params);
    const owner = ownerOf(call.forwarded.authorization);
    const find = () =>
      token === undefined ? undefined : this.#store.find(token, call.principal, digest, owner);
    let found = find();
    if (found?.kind === 'parked' && found.parkedCall.principal !== call.principal) {
      // Nobody but the backend can tell whether a renewed credential is its owner's.
      const refusal = await refusedBy(route, this.#caller(call, envelope));
      if (refusal !== undefined) {
        refuse(call.response, frame, refusal);
        return 'answered';
      }
      found = find();
    }
    const responses = getMember(bytes, params, 'inputResponses');
    if (found?.kind === 'parked') {
      if (responses !== undefined && responses.kind !== 'object')
        refuseState(call, frame, 'inputResponses must be an object');
      else {
        const { forwarded } = call;
        found.parkedCall.call.resume(waiterOf(call, frame, envelope), { forwarded, bytes, responses });
      }
      return 'answered';
    }
    if (found?.kind === 'repeat') {
      const declined = responses === undefined ? undefined : refusedAction(bytes, responses);
      if (declined === undefined) return 'again';
      refuseState(call, frame, `the server needs what was answered with ${declined}`);
      return 'answered';
    }
    // A state that this gateway did not make may be that of a modern backend, which then judges it.
    const caller = this.#caller(call, envelope);
    if (found?.kind !== 'refused' && (await eraOf(route, caller)) === 'modern') return 'resumes';
    refuseState(
      call,
      frame,
      `Invalid or expired requestState${found?.kind === 'refused' ? `: ${found.reason}` : ''}`,
    );
    return 'answered';
  }

  readonly #write = (waiter: Waiter, exchange: Exchange, outcome: Outcome): void => {
    const { request, caller } = exchange;
    writeOutcome(waiter, exchange, outcome, () =>
      this.#store.sealRetry(
        caller.principal,
        requestDigest(request.method, request.params.bytes, request.params.node),
        ownerOf(caller.forwarded.authorization),
      ),
    );
  };

  #outcome(route: RouteService, call: HttpCall, frame: RequestFrame, exchange: Exchange): Promise<Outcome> {
    if (frame.method === DISCOVER) return discover(route, exchange);
    if (frame.method === LISTEN) return this.#listen(route, call, frame, exchange);
    return this.#tasks.answer(exchange, (caller) => route.authenticate(caller)) ?? route.run(exchange);
  }

  /** A modern backend keeps the subscription itself; on another one the gateway does. */
  async #listen(
    route: RouteService,
    call: HttpCall,
    frame: RequestFrame,
    exchange: Exchange,
  ): Promise<Outcome> {
    const filter = requestedFilter(frame);
    if (typeof filter === 'string')
      return ownError({ code: CODE.invalidParams, message: filter, status: 400 });
    if (!call.response.acceptsEvents) {
      const message = 'Not Acceptable: the client must accept text/event-stream';
      return ownError({ code: CODE.server, message, status: 406 });
    }
    if ((await eraOf(route, exchange.caller)) === 'modern') return route.run(exchange);
    // The specification of the extension wants this refused, whether or not it could be told of tasks.
    if (namesTasks(frame) && exchange.taskKeeper === undefined) return tasksUndeclared();
    const stream = new SubscriptionStream(exchange, call.response, filter);
    return route.follow(exchange, filter, stream, (honoured) => stream.acknowledge(honoured));
  }

  #begin(
    route: RouteService,
    call: HttpCall,
    frame: RequestFrame,
    envelope: Envelope,
    kind: RequestKind,
  ): InteractiveCall {
    const request: ExchangeRequest = {
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
      resumes: kind === 'resumes',
      raw: rawOf(frame),
      paramHeaders: call.headers.params,
    };
    const caller = this.#caller(call, envelope);
    const taskKeeper = declaresTasks(envelope.sender.capabilities)
      ? this.#tasks.keeperFor(caller)
      : undefined;
    return new InteractiveCall(
      {
        store: this.#store,
        write: this.#write,
        failureOf: (error) => route.failureOf(error),
        request,
        caller,
        taskKeeper,
      },
      waiterOf(call, frame, envelope),
    );
  }

  #caller(call: HttpCall, { sender }: Envelope): Caller {
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
}

/** A retry without what makes it one, for a call that is begun anew. */
function withoutRound({ id, method, bytes, params }: RequestFrame): RequestFrame {
  const rest = new Rope();
  writeObject(rest, bytes, params, ROUND_MEMBERS);
  return parseFrame(requestRope(id, method, rest).toBuffer()) as RequestFrame;
}

function waiterOf(call: HttpCall, frame: RequestFrame, envelope: Envelope): Waiter {
  return {
    id: frame.id,
    response: call.response,
    progressToken: envelope.progressToken,
    logLevel: envelope.sender.logLevel,
  };
}

function refuseState(call: HttpCall, frame: RequestFrame, message: string): void {
  call.response.end(400, errorRope(frame.id, CODE.invalidParams, message));
}

/** What the backend has against the credentials of a caller. */
async function refusedBy(route: RouteService, caller: Caller): Promise<ErrorOutcome | undefined> {
  try {
    await route.authenticate(caller);
    return undefined;
  } catch (error) {
    if (error instanceof ExchangeError) return error.outcome;
    throw error;
  }
}

/** The first answer that is a refusal. */
function refusedAction(bytes: Buffer, responses: JsonNode): string | undefined {
  for (const { value } of membersOf(bytes, responses)) {
    const action = stringOf(bytes, getMember(bytes, value, 'action'));
    if (action === 'decline' || action === 'cancel') return action;
  }
  return undefined;
}

async function eraOf(route: RouteService, caller: Caller): Promise<EraName | undefined> {
  try {
    return await route.eraFor(caller);
  } catch (error) {
    return ignoreFailure(error);
  }
}

function bringsState({ bytes, params }: RequestFrame): boolean {
  return params !== undefined && getMember(bytes, params, 'requestState') !== undefined;
}

/** Whether a message says of itself that it is of this era. */
function claims(frame: Frame): boolean {
  if (frame.type !== 'request' && frame.type !== 'notification') return false;
  const { bytes, params } = frame;
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  return meta !== undefined && getMember(bytes, meta, META.protocolVersion) !== undefined;
}

/** Whether the version header names this era, or one that is newer still. Dates of this form order as text does. */
function namesModern(call: HttpCall): boolean {
  const { protocolVersion } = call.headers;
  if (protocolVersion === MODERN_VERSION) return true;
  return (
    protocolVersion !== undefined &&
    /^\d{4}-\d\d-\d\d/.test(protocolVersion) &&
    protocolVersion >= MODERN_VERSION
  );
}

function methodNotAllowed(call: HttpCall): void {
  const message = `Method Not Allowed: ${MODERN_VERSION} has POST only`;
  call.response.end(405, errorRope(undefined, CODE.server, message), { allow: 'POST' });
}

/** A message with members of its own beside the envelope's is written anew; one without goes on as it came. */
function rawOf(frame: RequestFrame): Buffer | undefined {
  const { bytes, root } = frame;
  return root.members?.length === 4 && root.start === 0 && root.end === bytes.length ? bytes : undefined;
}

/** `server/discover` is answered on every route, from what the backend says of itself in its own era. */
async function discover(route: RouteService, exchange: Exchange): Promise<Outcome> {
  const description = await route.describe(exchange.caller);
  const versions = JSON.stringify(MODERN_VERSIONS);
  if (description.era === 'modern') {
    const bytes = description.result;
    const outcome = ownResult(bytes, scanJson(bytes, 2));
    outcome.edits.set('supportedVersions', versions);
    outcome.edits.set('capabilities', description.capabilities);
    outcome.edits.set('ttlMs', String(description.ttlMs));
    return { ...outcome, form: 'modern' };
  }
  const { capabilities, instructions, serverInfo } = description;
  const told = instructions === undefined ? '' : `,"instructions":${instructions}`;
  const bytes = Buffer.from(`{"supportedVersions":${versions},"capabilities":${capabilities}${told}}`);
  return ownResult(bytes, scanJson(bytes, 2), serverInfo);
}

function refuse(response: ClientResponse, frame: RequestFrame, refusal: ErrorFields): void {
  const { status = 502, code, message, data, headers } = refusal;
  response.end(status, errorRope(frame.id, code, message, data), headers);
}
