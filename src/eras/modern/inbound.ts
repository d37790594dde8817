import { CODE, QuestionRefused } from '../../exchange/errors.js';
import { Exchange, type ExchangeRequest } from '../../exchange/exchange.js';
import { type Outcome, ownError, ownResult } from '../../exchange/outcome.js';
import type { RouteService } from '../../exchange/route-service.js';
import {
  type Caller,
  type Channel,
  type Answer as ClientAnswer,
  isLogLevel,
  levelReaches,
  type Question,
  type ServerMessage,
} from '../../exchange/types.js';
import {
  type Batch,
  errorRope,
  type Frame,
  FrameError,
  getMember,
  type RequestFrame,
  Rope,
  resultRope,
  scanJson,
  stringOf,
  writeObject,
} from '../../jsonrpc/index.js';
import type { Answer } from '../../transports/answer.js';
import type { HttpCall } from '../../transports/inbound-call.js';
import type { Inbound } from '../era.js';
import { checkResult, dressError, dressResult } from './codec.js';
import { type Envelope, type Refusal, readEnvelope } from './envelope.js';
import { answerListenWithNothing, listenEnd } from './listen.js';
import { ENVELOPE_KEYS, META, MODERN_VERSION, MODERN_VERSIONS, TASKS_EXTENSION } from './names.js';

const LISTEN = 'subscriptions/listen';
const DISCOVER = 'server/discover';

/** Requests that the revision knows: an unknown one is the backend's to refuse. */
const CORE_METHODS: ReadonlySet<string> = new Set([
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
]);

/**
 * Statuses by which a backend, or the lack of one, puts off `server/discover`. Clients take the answer for what the
 * gateway speaks, and SDK clients read 429 as "the older revisions", so it is told in the one way that says "later".
 */
const NOT_NOW: ReadonlySet<number> = new Set([429, 502, 504]);

/** The modern era toward clients: every POST tells all that there is to know about its sender. */
export class ModernInbound implements Inbound {
  /**
   * A message is of this era if its `_meta` says so. One that says nothing is, if its version header does: it lacks
   * what this era demands, and is told so.
   */
  claimsPost(call: HttpCall, body: Frame | Batch): boolean {
    if (body.type === 'batch')
      return body.items.some((item) => !(item instanceof FrameError) && claims(item)) || namesModern(call);
    return claims(body) || namesModern(call) || (body.type === 'request' && body.method === DISCOVER);
  }

  async post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void> {
    if (body.type === 'request') await this.#request(route, call, body);
    // The revision has no notifications over HTTP; what comes is taken and dropped.
    else if (body.type === 'notification') call.answer.endEmpty(202);
    else {
      const message = `Invalid Request: ${MODERN_VERSION} has requests and notifications only`;
      call.answer.end(400, errorRope(undefined, CODE.invalidRequest, message));
    }
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

  async close(): Promise<void> {}

  /** Answers one request; never throws. */
  async #request(route: RouteService, call: HttpCall, frame: RequestFrame): Promise<void> {
    const envelope = readEnvelope(frame, call.headers);
    if ('code' in envelope) {
      refuse(call.answer, frame, envelope);
      return;
    }
    const exchange = this.#exchange(call, frame, envelope);
    call.answer.onGone(() => exchange.cancel('the client closed the response stream'));
    const outcome = await this.#outcome(route, call, frame, exchange);
    if (outcome === undefined) return;
    if (frame.method === LISTEN && exchange.cancelled !== undefined) {
      // The gateway ends the subscription, and says so in the proper way; a client that has left reads none of it.
      call.answer.end(200, listenEnd(frame.id, undefined));
    } else writeOutcome(call.answer, exchange, outcome);
    route.record(exchange, call.answer.status, outcome);
  }

  async #outcome(
    route: RouteService,
    call: HttpCall,
    frame: RequestFrame,
    exchange: Exchange,
  ): Promise<Outcome | undefined> {
    if (frame.method === DISCOVER) return discover(route, exchange);
    if (frame.method === LISTEN) {
      const filter =
        frame.params === undefined ? undefined : getMember(frame.bytes, frame.params, 'notifications');
      if (filter?.kind !== 'object') {
        return ownError({
          code: CODE.invalidParams,
          message: 'params.notifications must be an object',
          status: 400,
        });
      }
      const description = await describe(route, exchange);
      if ('outcome' in description) return description.outcome;
      if (description.era !== 'modern') {
        answerListenWithNothing(call.answer, frame.id, description.serverInfo);
        return undefined;
      }
      call.answer.openStream();
    }
    return route.run(exchange);
  }

  #exchange(call: HttpCall, frame: RequestFrame, envelope: Envelope): Exchange {
    const request: ExchangeRequest = {
      id: frame.id,
      method: frame.method,
      params: { bytes: frame.bytes, node: frame.params, meta: envelope.meta, envelopeKeys: ENVELOPE_KEYS },
      name: envelope.name,
      progressToken: envelope.progressToken,
      raw: rawOf(frame),
      paramHeaders: call.headers.params,
    };
    const caller: Caller = {
      era: 'modern',
      revision: envelope.version,
      principal: call.principal,
      clientInfo: envelope.clientInfo,
      capabilities: envelope.capabilities,
      neutralCapabilities: envelope.capabilities,
      logLevel: envelope.logLevel,
      forwarded: call.forwarded,
      session: undefined,
    };
    const channel = new ModernChannel(call.answer);
    const exchange = new Exchange(request, caller, channel);
    channel.exchange = exchange;
    return exchange;
  }
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
  return (
    protocolVersion !== undefined &&
    /^\d{4}-\d\d-\d\d/.test(protocolVersion) &&
    protocolVersion >= MODERN_VERSION
  );
}

function methodNotAllowed(call: HttpCall): void {
  const message = `Method Not Allowed: ${MODERN_VERSION} has POST only`;
  call.answer.end(405, errorRope(undefined, CODE.server, message), { allow: 'POST' });
}

/** A message with members of its own beside the envelope's is written anew; one without goes on as it came. */
function rawOf(frame: RequestFrame): Buffer | undefined {
  const { bytes, root } = frame;
  return root.members?.length === 4 && root.start === 0 && root.end === bytes.length ? bytes : undefined;
}

/** The way of a server's messages to a modern client: the request's own response stream. */
class ModernChannel implements Channel {
  exchange: Exchange | undefined;
  readonly #answer: Answer;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  notify(message: ServerMessage): boolean {
    const { exchange } = this;
    if (exchange === undefined || !this.#wanted(exchange, message)) return true;
    return this.#answer.event(new Rope().push(message.bytes));
  }

  onDrain(resume: () => void): void {
    this.#answer.onDrain(resume);
  }

  ask(question: Question): Promise<ClientAnswer> {
    return Promise.reject(new QuestionRefused(`the client did not declare what ${question.method} needs`));
  }

  /**
   * Whether a notification belongs on this stream: progress that was asked for, and log messages of the level asked
   * for (basic/patterns/progress, server/utilities/logging). A modern backend has seen to that itself.
   */
  #wanted(exchange: Exchange, message: ServerMessage): boolean {
    if (exchange.notes.backendEra === 'modern') return true;
    if (message.method === 'notifications/progress') return exchange.request.progressToken !== undefined;
    if (message.method !== 'notifications/message') return false;
    const { bytes, params } = message;
    const { logLevel } = exchange.caller;
    if (logLevel === undefined || params === undefined) return false;
    const level = stringOf(bytes, getMember(bytes, params, 'level'));
    return isLogLevel(level) && levelReaches(level, logLevel);
  }
}

async function describe(route: RouteService, exchange: Exchange) {
  try {
    return await route.describe(exchange.caller);
  } catch (error) {
    return { outcome: (error as { outcome: Outcome }).outcome };
  }
}

/** `server/discover` is answered on every route, from what the backend says of itself in its own era. */
async function discover(route: RouteService, exchange: Exchange): Promise<Outcome> {
  const description = await describe(route, exchange);
  if ('outcome' in description) return description.outcome;
  const versions = JSON.stringify(MODERN_VERSIONS);
  if (description.era === 'modern') {
    const bytes = description.result;
    const outcome = ownResult(bytes, scanJson(bytes, 2));
    outcome.edits.set('supportedVersions', versions);
    return { ...outcome, dress: 'modern' };
  }
  const { capabilities, instructions, serverInfo } = description;
  const told = instructions === undefined ? '' : `,"instructions":${instructions}`;
  const bytes = Buffer.from(`{"supportedVersions":${versions},"capabilities":${capabilities}${told}}`);
  return ownResult(bytes, scanJson(bytes, 2), serverInfo);
}

function refuse(answer: Answer, frame: RequestFrame, refusal: Refusal): void {
  answer.end(refusal.status, errorRope(frame.id, refusal.code, refusal.message, refusal.data));
}

function writeOutcome(answer: Answer, exchange: Exchange, outcome: Outcome): void {
  const { id, method, name } = exchange.request;
  if (outcome.type === 'error') {
    if (outcome.dress === 'modern') {
      const whole = new Rope()
        .push(`{"jsonrpc":"2.0","id":${id},"error":`)
        .push(outcome.raw as Buffer)
        .push('}');
      answer.end(outcome.status ?? 200, whole, outcome.headers);
      return;
    }
    const uri = method === 'resources/read' ? name : undefined;
    const { status, code, data, unchanged } = dressError(outcome, uri, CORE_METHODS.has(method));
    const { raw, message, headers } = outcome;
    if (unchanged && raw !== undefined) {
      answer.end(
        status,
        new Rope().push(`{"jsonrpc":"2.0","id":${id},"error":`).push(raw).push('}'),
        headers,
      );
    } else {
      const later = method === DISCOVER && NOT_NOW.has(status);
      answer.end(
        later ? 503 : status,
        errorRope(id, code, message, data),
        later ? { 'retry-after': '1', ...headers } : headers,
      );
    }
    return;
  }
  const forcePrivate = exchange.caller.forwarded.authorization !== undefined;
  if (outcome.dress === 'modern') {
    const problem = checkResult(method, outcome, declaresTasks(exchange), forcePrivate);
    if (problem !== undefined) {
      answer.end(200, errorRope(id, CODE.internal, problem));
      return;
    }
  } else dressResult(method, outcome, { ttlMs: 0, scope: 'private' });
  const { bytes, node, edits, frameId } = outcome;
  if (edits.size === 0 && frameId === id) {
    answer.end(200, new Rope().push(bytes));
    return;
  }
  const result = new Rope();
  writeObject(result, bytes, node, edits);
  answer.end(200, resultRope(id, result));
}

function declaresTasks(exchange: Exchange): boolean {
  const { extensions } = exchange.caller.capabilities.value;
  return typeof extensions === 'object' && extensions !== null && TASKS_EXTENSION in extensions;
}
