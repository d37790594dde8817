import type { Caller } from '../../../exchange/caller.js';
import { EXCHANGE_ERRORS, exchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { type Outcome, ownResult } from '../../../exchange/outcome.js';
import { rewriteParams } from '../../../exchange/rewrite-params.js';
import { insistsOnTask } from '../../../exchange/tasks.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import {
  type Edits,
  getMember,
  numberId,
  type ResultFrame,
  requestRope,
  scanJson,
} from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { InputFailed } from '../wire/input-requests.js';
import { MODERN_CODE } from '../wire/names.js';
import { paramHeaderValues, UnsendableArgument } from '../wire/param-headers.js';
import type { ToolMap } from '../wire/tool-traits.js';
import { inputError } from './ask-input.js';
import { errorOutcome } from './error-outcome.js';
import type { ResultPlace } from './immediate-results.js';
import type { ModernBackend } from './modern-backend.js';
import { namesOwnVersion } from './refusals.js';
import { resultOutcome, resultTypeOf } from './results.js';
import { Rounds } from './rounds.js';
import { sendRequest } from './send-request.js';
import { withTasksExtension } from './task-outcomes.js';

/** Removes the parameter with which a legacy client requests a task. */
const NO_TASK: Edits = new Map([['task', undefined]]);

/** Carries out a request of another era, in as many requests to the backend as it takes. */
export class ModernCall {
  readonly #exchange: Exchange;
  readonly #backend: ModernBackend;
  readonly #place: ResultPlace | undefined;
  readonly #isToolCall: boolean;
  /** The caller, with the tasks extension where the gateway handles a task for it. */
  #sender: Caller;
  /** Edits of the params, such as the answers of a further round. */
  #edits: Edits | undefined;
  #rounds: Rounds | undefined;
  #toolsReadAgain = false;
  #versionRetried = false;

  /** @param place for the result, if the client requests a task */
  constructor(exchange: Exchange, backend: ModernBackend, place: ResultPlace | undefined) {
    const { caller, request } = exchange;
    this.#exchange = exchange;
    this.#backend = backend;
    this.#place = place;
    this.#isToolCall = request.method === 'tools/call';
    this.#sender = place === undefined ? caller : withTasksExtension(caller);
    this.#edits = this.#isToolCall ? NO_TASK : undefined;
  }

  async run(): Promise<Outcome> {
    for (;;) {
      const tools = this.#isToolCall ? await this.#tools() : undefined;
      const reply = await this.#send(tools);
      if (reply.kind === 'response' && reply.frame.type === 'result') {
        const outcome = await this.#conclude(reply.frame, tools);
        if (outcome !== undefined) return outcome;
      } else if (!this.#canRetry(reply)) return errorOutcome(this.#exchange, this.#backend, reply);
    }
  }

  #tools(): Promise<ToolMap> {
    return abortable(this.#exchange.signal, this.#backend.descriptions.toolsOf(this.#exchange.caller));
  }

  #send(tools: ToolMap | undefined): Promise<RpcReply> {
    const { requests } = this.#backend;
    const { request, caller } = this.#exchange;
    const id = numberId(requests.nextId());
    const headers = requests.headers(caller, request.method, request.name);
    if (tools !== undefined) headers.push(...callHeaders(this.#exchange, tools));
    const params = rewriteParams(request.params, requests.envelope(this.#sender), this.#edits);
    const body = requestRope(id, request.method, params);
    return sendRequest(this.#exchange, this.#backend, { id, headers, body });
  }

  /** The outcome of a result; undefined if a further round follows. */
  async #conclude(frame: ResultFrame, tools: ToolMap | undefined): Promise<Outcome | undefined> {
    const type = resultTypeOf(frame);
    try {
      if (type === 'input_required') {
        await this.#nextRound(frame);
        return undefined;
      }
      if (type === 'task' && this.#sender !== this.#exchange.caller) return await this.#task(frame);
    } catch (error) {
      return inputFailure(this.#exchange, error);
    }
    return this.#result(frame, tools);
  }

  async #nextRound(frame: ResultFrame): Promise<void> {
    const { requests, maxRounds } = this.#backend;
    this.#rounds ??= new Rounds(this.#exchange, maxRounds, () => requests.nextId());
    this.#edits = new Map([...(await this.#rounds.next(frame)), ...NO_TASK]);
  }

  /** The backend has made a task of the call: returns its handle, or waits for its end if the client requested none. */
  async #task(frame: ResultFrame): Promise<Outcome> {
    const { tasks } = this.#backend;
    return this.#place === undefined
      ? await tasks.waitForEnd(this.#exchange, frame)
      : tasks.handleOfTask(this.#exchange, frame);
  }

  async #result(frame: ResultFrame, tools: ToolMap | undefined): Promise<Outcome> {
    const { descriptions, tasks, transport } = this.#backend;
    const outcome = resultOutcome(this.#exchange, frame, { transport, tools });
    if (this.#place !== undefined) return tasks.handleOfResult(this.#exchange, outcome, this.#place);
    const { request, caller } = this.#exchange;
    if (request.method !== 'tools/list') return outcome;
    return { ...outcome, takesTasks: await descriptions.makesTasks(caller) };
  }

  /** Whether the request is sent again after a refusal, once for each reason. A refused request was not carried out. */
  #canRetry(reply: RpcReply): boolean {
    const { caller } = this.#exchange;
    const error = reply.kind === 'response' && reply.frame.type === 'error' ? reply.frame : undefined;
    if (error === undefined) return false;
    if (this.#isToolCall && this.#sender === caller && insistsOnTask(error)) {
      this.#sender = withTasksExtension(caller);
      return true;
    }
    if (this.#isToolCall && !this.#toolsReadAgain && error.code === MODERN_CODE.headerMismatch) {
      // The header annotations of the tool have changed since the list was read.
      this.#toolsReadAgain = true;
      this.#backend.descriptions.forgetToolsOf(caller);
      return true;
    }
    if (this.#versionRetried || !namesOwnVersion(reply)) return false;
    this.#versionRetried = true;
    return true;
  }
}

/** The headers for the annotated arguments of a tool call. */
function callHeaders(exchange: Exchange, tools: ToolMap): string[] {
  const { name, params } = exchange.request;
  const traits = name === undefined ? undefined : tools.get(name);
  if (traits === undefined || traits.paramHeaders.length === 0 || params.node === undefined) return [];
  try {
    return paramHeaderValues(
      params.bytes,
      getMember(params.bytes, params.node, 'arguments'),
      traits.paramHeaders,
    );
  } catch (error) {
    if (!(error instanceof UnsendableArgument)) throw error;
    throw exchangeError(EXCHANGE_ERRORS.ERAGATE_INVALID_PARAMS, { problem: error.message });
  }
}

/** The outcome where server requests failed: a tool error, which the model can read, or an error of another request. */
function inputFailure(exchange: Exchange, error: unknown): Outcome {
  if (!(error instanceof InputFailed)) throw error;
  const outcome = inputError(error);
  if (exchange.request.method !== 'tools/call') return outcome;
  const bytes = Buffer.from(
    JSON.stringify({ content: [{ type: 'text', text: outcome.message }], isError: true }),
  );
  return ownResult(bytes, scanJson(bytes, 2));
}
