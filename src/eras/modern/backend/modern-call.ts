import { abortable } from '../../../exchange/abortable.js';
import { type Change, changeOf, isChange } from '../../../exchange/changes.js';
import { badGateway, CODE, cancelled, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import { backendError, type Outcome, ownError, ownResult } from '../../../exchange/outcome.js';
import { serverMessageFor } from '../../../exchange/progress.js';
import { rewriteParams } from '../../../exchange/rewrite.js';
import { isSafe } from '../../../exchange/safe-methods.js';
import { insistsOnTask } from '../../../exchange/tasks.js';
import type { Caller } from '../../../exchange/types.js';
import {
  type Edits,
  getMember,
  type NotificationFrame,
  numberId,
  type RequestFrame,
  type ResultFrame,
  Rope,
  requestRope,
  scanJson,
} from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { RpcCall, type RpcListener, type RpcReply } from '../../../upstream/rpc-call.js';
import { InputFailed } from '../wire/input-requests.js';
import { MODERN_CODE } from '../wire/names.js';
import { paramHeaderValues, UnsendableArgument } from '../wire/param-headers.js';
import type { ToolMap } from '../wire/tool-traits.js';
import type { ResultPlace } from './immediate-results.js';
import { failureOf, namesOwnVersion, wrongEraOf } from './refusals.js';
import type { ModernRequests, RequestsOptions } from './requests.js';
import { resultOutcome, resultTypeOf } from './results.js';
import { Rounds } from './rounds.js';
import type { ServerDescriptions } from './server-description.js';
import type { SessionTasks } from './session-tasks.js';
import { withTasksExtension } from './task-outcomes.js';

/** What calls are to know of the backend that is configured. */
export interface CallOptions extends RequestsOptions {
  /** For messages to people. */
  readonly name: string;
  /** Rounds of questions in one call. */
  readonly maxRounds: number;
  /** Told of every change that is heard of. */
  readonly onChange: (change: Change) => void;
}

/** A backend of this era as its calls know it. */
export interface ModernBackend extends CallOptions {
  readonly requests: ModernRequests;
  readonly facts: ServerDescriptions;
  readonly tasks: SessionTasks;
}

/** What makes a call a task in the legacy era is nothing here. */
const NO_TASK: Edits = new Map([['task', undefined]]);
/** Python's SDK, of a handler that asks in the way of the legacy era: it was begun, and got as far as the question. */
const NO_BACK_CHANNEL = /no back-channel/i;

/** Passes a request of this era on, and what comes back. */
export async function passOn(exchange: Exchange, backend: ModernBackend): Promise<Outcome> {
  const { request, caller } = exchange;
  const headers = backend.requests.headers(caller, request.method, request.name);
  for (const part of request.paramHeaders) headers.push(part);
  const reply = await send(exchange, backend, request.id, headers, asItCame(exchange));
  if (reply.kind !== 'answer' || reply.frame.type === 'error') return errorOutcome(exchange, backend, reply);
  noteResultType(backend, reply.frame);
  return resultOutcome(exchange, reply.frame, undefined);
}

/** Carries out a request of another era: in as many requests as it takes. */
export class ModernCall {
  readonly #exchange: Exchange;
  readonly #backend: ModernBackend;
  readonly #place: ResultPlace | undefined;
  readonly #isToolCall: boolean;
  /** The caller, or what the gateway says in its place: that it can do what it does for it. */
  #asker: Caller;
  /** To the params, such as what a further round adds. */
  #edits: Edits | undefined;
  #rounds: Rounds | undefined;
  #readToolsAgain = false;
  #triedVersionAgain = false;

  /** @param place where the client wants the handle of a task */
  constructor(exchange: Exchange, backend: ModernBackend, place: ResultPlace | undefined) {
    const { caller, request } = exchange;
    this.#exchange = exchange;
    this.#backend = backend;
    this.#place = place;
    this.#isToolCall = request.method === 'tools/call';
    this.#asker = place === undefined ? caller : withTasksExtension(caller);
    this.#edits = this.#isToolCall ? NO_TASK : undefined;
  }

  async run(): Promise<Outcome> {
    for (;;) {
      const tools = this.#isToolCall ? await this.#tools() : undefined;
      const reply = await this.#send(tools);
      if (reply.kind === 'answer' && reply.frame.type === 'result') {
        const outcome = await this.#concluded(reply.frame, tools);
        if (outcome !== undefined) return outcome;
      } else if (!this.#isWorthAnotherTry(reply)) return errorOutcome(this.#exchange, this.#backend, reply);
    }
  }

  #tools(): Promise<ToolMap> {
    return abortable(this.#exchange.signal, this.#backend.facts.toolsOf(this.#exchange.caller));
  }

  #send(tools: ToolMap | undefined): Promise<RpcReply> {
    const { requests } = this.#backend;
    const { request, caller } = this.#exchange;
    const id = numberId(requests.nextId());
    const headers = requests.headers(caller, request.method, request.name);
    if (tools !== undefined) headers.push(...callHeaders(this.#exchange, tools));
    const params = rewriteParams(request.params, requests.envelope(this.#asker), this.#edits);
    const body = requestRope(id, request.method, params);
    return send(this.#exchange, this.#backend, id, headers, body);
  }

  /** The outcome that a result is; undefined where another round has to follow. */
  async #concluded(frame: ResultFrame, tools: ToolMap | undefined): Promise<Outcome | undefined> {
    const type = resultTypeOf(frame);
    try {
      if (type === 'input_required') {
        await this.#nextRound(frame);
        return undefined;
      }
      if (type === 'task' && this.#asker !== this.#exchange.caller) return await this.#task(frame);
    } catch (error) {
      return failedServerRequests(this.#exchange, error);
    }
    return this.#result(frame, tools);
  }

  async #nextRound(frame: ResultFrame): Promise<void> {
    const { requests, maxRounds } = this.#backend;
    this.#rounds ??= new Rounds(this.#exchange, maxRounds, () => requests.nextId());
    this.#edits = new Map([...(await this.#rounds.next(frame)), ...NO_TASK]);
  }

  /** A task that the backend has made of the call, for a client that asked for one or that did not. */
  async #task(frame: ResultFrame): Promise<Outcome> {
    const { tasks } = this.#backend;
    return this.#place === undefined
      ? await tasks.waitForEnd(this.#exchange, frame)
      : tasks.handleOfTask(this.#exchange, frame);
  }

  async #result(frame: ResultFrame, tools: ToolMap | undefined): Promise<Outcome> {
    const { facts, tasks } = this.#backend;
    noteResultType(this.#backend, frame);
    const outcome = resultOutcome(this.#exchange, frame, tools);
    if (this.#place !== undefined) return tasks.handleOfResult(this.#exchange, outcome, this.#place);
    const { request, caller } = this.#exchange;
    if (request.method !== 'tools/list') return outcome;
    return { ...outcome, takesTasks: await facts.makesTasks(caller) };
  }

  /** Whether a refusal is about something that can be put right, once each. Nothing was carried out then. */
  #isWorthAnotherTry(reply: RpcReply): boolean {
    const { caller } = this.#exchange;
    const error = reply.kind === 'answer' && reply.frame.type === 'error' ? reply.frame : undefined;
    if (error === undefined) return false;
    if (this.#isToolCall && this.#asker === caller && insistsOnTask(error)) {
      this.#asker = withTasksExtension(caller);
      return true;
    }
    if (this.#isToolCall && !this.#readToolsAgain && error.code === MODERN_CODE.headerMismatch) {
      // The tool's definition has changed since it was read.
      this.#readToolsAgain = true;
      this.#backend.facts.forgetToolsOf(caller);
      return true;
    }
    if (this.#triedVersionAgain || !namesOwnVersion(reply)) return false;
    this.#triedVersionAgain = true;
    return true;
  }
}

/** Sends one request for an exchange, and waits for its end. */
async function send(
  exchange: Exchange,
  backend: ModernBackend,
  id: string,
  headers: readonly string[],
  body: Rope,
): Promise<RpcReply> {
  const startedAt = performance.now();
  const rpc = new RpcCall(id, backend.ticker, new CallListener(exchange, backend.onChange));
  const observing = exchange.attach({ onCancelled: (reason) => rpc.abort(reason) });
  const reply = await rpc.post({
    transport: backend.transport,
    headers,
    body,
    repeatable: isSafe(exchange.request.method),
  }).reply;
  observing[Symbol.dispose]();
  exchange.notes.backendMs = performance.now() - startedAt;
  if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
  return reply;
}

/** What comes on the answer stream of a call: notifications for the client, and nothing else in this era. */
class CallListener implements RpcListener {
  readonly #exchange: Exchange;
  readonly #onChange: (change: Change) => void;

  constructor(exchange: Exchange, onChange: (change: Change) => void) {
    this.#onChange = onChange;
    this.#exchange = exchange;
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (isChange(frame.method)) this.#onChange(changeOf(frame));
    const exchange = this.#exchange;
    const message = serverMessageFor(exchange, frame, exchange.request.progressToken);
    if (message === undefined || exchange.notify(message)) return undefined;
    return (resume) => exchange.onDrain(resume);
  }

  /** The revision forbids requests on this stream (basic/transports, "Receiving Messages"). */
  onRequest(_frame: RequestFrame): void {}
}

function asItCame({ request }: Exchange): Rope {
  const { raw } = request;
  if (raw !== undefined) return new Rope().push(raw);
  const { bytes, node } = request.params;
  const params = node === undefined ? undefined : new Rope().pushSlice(bytes, node.start, node.end);
  return requestRope(request.id, request.method, params);
}

function callHeaders(exchange: Exchange, tools: ToolMap): string[] {
  const { name, params } = exchange.request;
  const facts = name === undefined ? undefined : tools.get(name);
  if (facts === undefined || facts.paramHeaders.length === 0 || params.node === undefined) return [];
  try {
    return paramHeaderValues(
      params.bytes,
      getMember(params.bytes, params.node, 'arguments'),
      facts.paramHeaders,
    );
  } catch (error) {
    if (!(error instanceof UnsendableArgument)) throw error;
    throw new ExchangeError(ownError({ code: CODE.invalidParams, message: error.message }));
  }
}

function noteResultType({ transport }: ModernBackend, { bytes, result }: ResultFrame): void {
  if (getMember(bytes, result, 'resultType') === undefined)
    transport.reportDeviation('leaves resultType out of its results');
}

/** @throws ExchangeError, WrongEra where the reply is no word to the client */
function errorOutcome(exchange: Exchange, backend: ModernBackend, reply: RpcReply): Outcome {
  if (reply.kind !== 'answer' || reply.frame.type === 'result') throw failureOf(backend.name, reply);
  const { frame, status } = reply;
  const sameEra = exchange.caller.era === 'modern';
  const outcome = backendError(frame, status, sameEra ? 'modern' : 'neutral');
  const forClient = refusalForClient(status, reply.headers, frame.message, outcome);
  if (forClient !== undefined) throw forClient;
  if (frame.code === CODE.invalidRequest && NO_BACK_CHANNEL.test(frame.message)) {
    return { ...outcome, cannotAsk: true };
  }
  const wrongEra = wrongEraOf(backend.name, frame, status, outcome);
  if (wrongEra !== undefined) throw wrongEra;
  const isOfGateway =
    frame.code === MODERN_CODE.headerMismatch || frame.code === MODERN_CODE.unsupportedVersion;
  if (!sameEra && isOfGateway)
    throw badGateway(`${backend.name} refused the gateway's request: ${frame.code} ${frame.message}`, 200);
  return outcome;
}

/** JoinedServerRequests that failed are the tool's failure, which its caller can read; other requests have errors only. */
function failedServerRequests(exchange: Exchange, error: unknown): Outcome {
  if (!(error instanceof InputFailed)) throw error;
  const { outcome } = error.toExchangeError();
  if (exchange.request.method !== 'tools/call') return outcome;
  const bytes = Buffer.from(
    JSON.stringify({ content: [{ type: 'text', text: outcome.message }], isError: true }),
  );
  return ownResult(bytes, scanJson(bytes, 2));
}
