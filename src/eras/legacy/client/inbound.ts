import type { HttpCall, StreamCall } from '../../../downstream/http-call.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import { ownerOf } from '../../../exchange/credentials.js';
import { declarationProblem, MAX_TOKEN_BYTES, metaProblem } from '../../../exchange/declaration.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { ExchangeRequest } from '../../../exchange/exchange.js';
import { isLogLevel } from '../../../exchange/log-levels.js';
import { type ErrorOutcome, type Outcome, ownResult } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import {
  type Batch,
  type ErrorFrame,
  errorRope,
  type Frame,
  FrameError,
  getMember,
  type JsonNode,
  type NotificationFrame,
  nameMap,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
  Rope,
  resultRope,
  scanJson,
  stringOf,
  textOf,
} from '../../../jsonrpc/index.js';
import type { Inbound } from '../../era.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';
import { initializeResult } from '../wire/initialize-result.js';
import { featuresFor, negotiateRevision } from '../wire/revisions.js';
import { asksForTask } from '../wire/tasks.js';
import { CallChannel } from './call-channel.js';
import { writeError, writeResult } from './outcome.js';
import type { LegacyClientSession } from './session.js';
import { refuse, SessionFinder } from './session-lookup.js';
import type { ClientSessions } from './sessions.js';

const EMPTY = Buffer.from('{}');
const MAX_BATCH = 100;
const NO_KEYS: readonly string[] = [];

/** Where the answer to one request goes: the HTTP response, or its place in the answer to a batch. */
type Reply = (status: number, message: Rope, headers?: Readonly<Record<string, string>>) => void;

/** A message that has no response. */
type OneWay = NotificationFrame | ResultFrame | ErrorFrame;

/** The legacy era toward clients: the handshake, and what comes on the sessions that it makes. */
export class LegacyInbound implements Inbound {
  readonly #sessions: ClientSessions;
  readonly #finder: SessionFinder;

  constructor(sessions: ClientSessions) {
    this.#sessions = sessions;
    this.#finder = new SessionFinder(sessions);
  }

  /** Whatever is of no other era is taken here: most of the world's clients name no era at all. */
  claimsPost(): boolean {
    return true;
  }

  claimsOther(): boolean {
    return true;
  }

  /** `initialize`: the backend is asked first, since its answer is told to the client. */
  async #initialize(route: RouteService, call: HttpCall, frame: RequestFrame): Promise<void> {
    const { bytes, params } = frame;
    const member = (key: string): JsonNode | undefined =>
      params === undefined ? undefined : getMember(bytes, params, key);
    if (params === undefined) {
      call.response.end(
        200,
        errorRope(frame.id, CODE.invalidParams, 'Invalid params: initialize needs params'),
      );
      return;
    }
    const revision = negotiateRevision(stringOf(bytes, member('protocolVersion')));
    const declared = member('capabilities');
    const info = member('clientInfo');
    const problem =
      declarationProblem(bytes, declared, 'capabilities') ??
      declarationProblem(bytes, info, 'clientInfo') ??
      paramsProblem(frame);
    if (problem !== undefined) {
      call.response.end(400, errorRope(frame.id, CODE.invalidParams, `Invalid params: ${problem}`));
      return;
    }
    const capabilities = readCapabilities(declared?.kind === 'object' ? textOf(bytes, declared) : '{}');
    const session = this.#sessions.create({
      route: route.path,
      revision,
      principal: call.principal,
      owner: ownerOf(call.forwarded.authorization),
      clientInfo: info?.kind === 'object' ? textOf(bytes, info) : undefined,
      capabilities,
      neutralCapabilities: neutralClientCapabilities(capabilities, revision),
      backendSession: undefined,
    });
    const { exchange } = new CallChannel(session, call.response, requestOf(session, frame), call.forwarded);
    exchange.notes.requestId = call.requestId;
    let outcome: Outcome;
    try {
      const description = await route.describe(exchange.caller);
      const result = initializeResult(description, revision);
      outcome = ownResult(result, scanJson(result, 2));
      const token = this.#sessions.add(session);
      call.response.end(200, resultRope(frame.id, new Rope().push(result)), { 'mcp-session-id': token });
      if (call.response.aborted) await this.#sessions.end(session);
    } catch (error) {
      outcome = route.failureOf(error);
      void session.binding?.end();
      writeError(outcome, exchange, (...args) => call.response.end(...args));
    }
    route.record(exchange, call.response.status, outcome);
  }

  /** A POST on a session. */
  async post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void> {
    if (body.type === 'request' && body.method === 'initialize') {
      await this.#initialize(route, call, body);
      return;
    }
    if (
      call.headers.sessionId === undefined &&
      (body.type === 'batch' || body.type === 'result' || body.type === 'error')
    ) {
      call.response.end(
        400,
        errorRope(undefined, CODE.invalidRequest, `Invalid Request: a ${body.type} needs a session`),
      );
      return;
    }
    // The id of an answer is one of the server's: a refusal that bears it could be taken for the answer to a request.
    const found = this.#finder.find(route, call, body.type === 'request' ? body.id : undefined);
    const session = found instanceof Promise ? await found : found;
    if (session === undefined) return;
    if (session.resumable)
      call.response.makeResumable(session, body.type === 'request' ? session.holdMs : undefined);
    if (body.type === 'batch' || body.type === 'request') call.response.allowStream();
    if (body.type === 'batch') await this.#batch(route, call, session, body);
    else if (body.type === 'request') {
      await this.#request(route, call, session, body, (...args) => call.response.end(...args));
    } else {
      if (isLeft(session)) await resume(route, call, session);
      if (!(await this.#admits(route, call, session, body))) return;
      try {
        this.#oneWay(session, call, body);
      } catch (error) {
        refuse(call, undefined, error);
        return;
      }
      call.response.endEmpty(202);
    }
  }

  /** GET: the stream for messages outside any request. */
  async get(route: RouteService, call: StreamCall): Promise<void> {
    if (rejectWithoutSession(call)) return;
    const session = await this.#finder.find(route, call, undefined);
    if (session === undefined) return;
    if (!call.response.acceptsEvents) {
      call.response.end(
        406,
        errorRope(undefined, CODE.server, 'Not Acceptable: the client must accept text/event-stream'),
      );
      return;
    }
    const { lastEventId, response } = call;
    if (lastEventId === undefined || !session.resumable) session.listen(response);
    else if (!session.resume(lastEventId, response)) {
      const message = 'Bad Request: what came after this Last-Event-ID is not known, or kept no longer';
      response.end(400, errorRope(undefined, CODE.server, message));
      return;
    }
    // From now on the messages of its backend session are waited for.
    if (session.binding === undefined) void resume(route, call, session);
  }

  async delete(route: RouteService, call: HttpCall): Promise<void> {
    if (rejectWithoutSession(call)) return;
    const session = await this.#finder.find(route, call, undefined);
    if (session === undefined) return;
    if (isLeft(session)) await resume(route, call, session);
    const ended = this.#sessions.end(session);
    call.response.endEmpty(200);
    await ended;
  }

  async drain(): Promise<void> {}

  async close(): Promise<void> {
    await this.#sessions.close();
  }

  async #request(
    route: RouteService,
    call: HttpCall,
    session: LegacyClientSession,
    frame: RequestFrame,
    reply: Reply,
  ): Promise<void> {
    const { id, method } = frame;
    const problem = paramsProblem(frame);
    if (problem !== undefined) {
      reply(400, errorRope(id, CODE.invalidParams, `Invalid params: ${problem}`));
      return;
    }
    const channel = new CallChannel(session, call.response, requestOf(session, frame), call.forwarded);
    const { exchange } = channel;
    exchange.notes.requestId = call.requestId;
    const own = OWN_METHODS.get(method)?.(session, frame);
    if (own !== undefined) {
      reply(200, own);
      return;
    }
    if (!session.begin(id, exchange)) {
      reply(
        200,
        errorRope(id, CODE.invalidRequest, `Invalid Request: id ${id} is in use by a request in flight`),
      );
      return;
    }
    const outcome = await route.run(exchange);
    session.finish(id);
    channel.finish();
    // A cancelled request has no response (basic/utilities/cancellation); the stream that it was to come on ends.
    if (exchange.cancelled !== undefined && !exchange.timedOut) {
      if (!call.response.done)
        reply(200, errorRope(id, CODE.internal, `Request cancelled: ${exchange.cancelled}`));
    } else if (outcome.type === 'error') {
      if (isChallenge(outcome)) session.challenge();
      writeError(outcome, exchange, reply);
    } else writeResult(outcome, exchange, featuresFor(session.facts.revision), reply);
    route.record(exchange, call.response.status || 200, outcome);
  }

  /**
   * Tries the credentials of an answer before the server hears of it: the request that it is sent in is over by then, and
   * a client that is to bring better ones could not be told. The question stays open for it.
   */
  async #admits(
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
      // Whatever else the backend has to say of a try, the answer itself may still find its way.
      if (error instanceof ExchangeError && error.outcome.status !== 401 && !isChallenge(error.outcome))
        return true;
      refuse(call, undefined, error);
      return false;
    }
  }

  #oneWay(session: LegacyClientSession, call: HttpCall, frame: OneWay): void {
    if (frame.type !== 'notification') {
      session.answer(frame, call.forwarded);
      return;
    }
    const { method, bytes, params, root } = frame;
    if (method === 'notifications/initialized') return;
    if (method === 'notifications/cancelled') {
      const requestId = params === undefined ? undefined : getMember(bytes, params, 'requestId');
      if (requestId === undefined) return;
      const reason = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'reason'));
      session.inFlight(textOf(bytes, requestId) as RequestId)?.cancel(reason ?? 'the client cancelled');
      return;
    }
    session.binding?.notify(method, bytes.subarray(root.start, root.end));
  }

  /** A batch has no response for a notification that is refused. */
  #oneWayOfBatch(session: LegacyClientSession, call: HttpCall, frame: OneWay): void {
    try {
      this.#oneWay(session, call, frame);
    } catch (error) {
      if (!(error instanceof ExchangeError)) throw error;
    }
  }

  /** JSON-RPC batches exist in 2025-03-26 alone. */
  async #batch(
    route: RouteService,
    call: HttpCall,
    session: LegacyClientSession,
    batch: Batch,
  ): Promise<void> {
    const { response } = call;
    if (!featuresFor(session.facts.revision).batches) {
      response.end(
        400,
        errorRope(undefined, CODE.invalidRequest, `Invalid Request: no batches in ${session.facts.revision}`),
      );
      return;
    }
    if (batch.items.length > MAX_BATCH) {
      response.end(
        400,
        errorRope(
          undefined,
          CODE.invalidRequest,
          `Invalid Request: more than ${MAX_BATCH} messages in a batch`,
        ),
      );
      return;
    }
    const responses: Rope[] = [];
    const reply: Reply = (_status, message) => {
      // On a stream no response has to wait for the others.
      if (response.streaming) response.writeEvent(message);
      else responses.push(message);
    };
    await Promise.all(
      batch.items.map((item) => {
        if (item instanceof FrameError) reply(400, errorRope(item.id, item.code, item.message));
        else if (item.type !== 'request') this.#oneWayOfBatch(session, call, item);
        else if (item.method === 'initialize') {
          reply(
            200,
            errorRope(
              item.id,
              CODE.invalidRequest,
              'Invalid Request: initialize must not be part of a batch',
            ),
          );
        } else return this.#request(route, call, session, item, reply);
        return undefined;
      }),
    );
    if (responses.length === 0) response.endEmpty(202);
    else response.endBatch(responses);
  }
}

/** What of a request is too large to be read or kept; undefined for one that is accepted. */
function paramsProblem({ bytes, params }: RequestFrame): string | undefined {
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  if (meta === undefined) return undefined;
  const token = getMember(bytes, meta, 'progressToken');
  const long = token !== undefined && token.end - token.start > MAX_TOKEN_BYTES;
  return long ? `progressToken: more than ${MAX_TOKEN_BYTES} bytes` : metaProblem(bytes, meta);
}

/** A request as the exchange knows it. */
function requestOf({ facts }: LegacyClientSession, frame: RequestFrame): ExchangeRequest {
  const { bytes, params, method, id } = frame;
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  const token = meta === undefined ? undefined : getMember(bytes, meta, 'progressToken');
  return {
    id,
    method,
    params: {
      bytes,
      node: params,
      meta: meta?.kind === 'object' ? meta : undefined,
      envelopeKeys: NO_KEYS,
      bareEnvelope: false,
    },
    name: nameOf(frame),
    progressToken: token?.kind === 'string' || token?.kind === 'number' ? textOf(bytes, token) : undefined,
    wantsTask: method === 'tools/call' && featuresFor(facts.revision).tasks && asksForTask(bytes, params),
    resumes: false,
    raw: undefined,
    paramHeaders: NO_KEYS,
  };
}

/** Whether an error is about the credential of the request. */
function isChallenge({ status, headers }: ErrorOutcome): boolean {
  return (status === 401 || status === 403) && headers?.['www-authenticate'] !== undefined;
}

/** Whether another process began the session, and this one has not taken up its backend session yet. */
function isLeft(session: LegacyClientSession): boolean {
  return session.binding === undefined && session.backendSession !== undefined;
}

/** Makes the backend session of a client session known here; never throws. */
async function resume(route: RouteService, call: HttpCall, session: LegacyClientSession): Promise<void> {
  await route.describe(session.caller(call.forwarded)).catch(() => {});
}

/** Clients try GET before they have a session, to see whether there is a stream to be had; 405 says that there is not. */
function rejectWithoutSession(call: HttpCall): boolean {
  if (call.headers.sessionId !== undefined) return false;
  call.response.end(405, errorRope(undefined, CODE.server, 'Method Not Allowed: needs an Mcp-Session-Id'), {
    allow: 'POST',
  });
  return true;
}

/** What a request is about, for the log and for `Mcp-Name`. */
function nameOf(frame: RequestFrame): string | undefined {
  const { bytes, params, method } = frame;
  const key =
    method === 'resources/read'
      ? 'uri'
      : method === 'tools/call' || method === 'prompts/get'
        ? 'name'
        : undefined;
  return key === undefined || params === undefined
    ? undefined
    : stringOf(bytes, getMember(bytes, params, key));
}

type OwnMethod = (session: LegacyClientSession, frame: RequestFrame) => Rope | undefined;

/** Requests that the gateway answers itself, on every route; undefined passes them on. */
const OWN_METHODS: ReadonlyMap<string, OwnMethod> = nameMap({
  ping: (_session, { id }) => resultRope(id, new Rope().push(EMPTY)),
  initialize: (_session, { id }) =>
    errorRope(id, CODE.invalidRequest, 'Invalid Request: the session is initialized already'),
  'subscriptions/listen': (_session, { id, method }) =>
    errorRope(id, CODE.methodNotFound, `Method not found: ${method}`),
  'logging/setLevel': (session, { id, bytes, params }) => {
    const level = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'level'));
    if (!isLogLevel(level))
      return errorRope(id, CODE.invalidParams, 'Invalid params: level is not a log level');
    session.setLogLevel(level);
    return undefined;
  },
});
