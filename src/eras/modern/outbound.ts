import { LRUCache } from 'lru-cache';
import { abortable } from '../../exchange/abortable.js';
import { type Change, type ChangeFilter, changeOf, isChange, LIST_CHANGES } from '../../exchange/changes.js';
import { readCapabilities } from '../../exchange/digest.js';
import { badGateway, CODE, cancelled, ExchangeError } from '../../exchange/errors.js';
import type { Exchange } from '../../exchange/exchange.js';
import { refusalForClient } from '../../exchange/http-refusal.js';
import type { Hub, Subscriber, Subscription } from '../../exchange/hub.js';
import { Hubs } from '../../exchange/hubs.js';
import type { Outbound, ServerDescription } from '../../exchange/outbound.js';
import {
  backendError,
  type Outcome,
  ownError,
  ownResult,
  type ResultOutcome,
} from '../../exchange/outcome.js';
import { Patience } from '../../exchange/patience.js';
import { serverMessageFor } from '../../exchange/progress.js';
import { rewriteParams } from '../../exchange/rewrite.js';
import { isSafe } from '../../exchange/safe-methods.js';
import { statedCapabilities } from '../../exchange/server-capabilities.js';
import { declaresTasks, insistsOnTask } from '../../exchange/tasks.js';
import type { Caller, ClientSession } from '../../exchange/types.js';
import {
  type Edits,
  type ErrorFrame,
  getMember,
  type NotificationFrame,
  type RequestFrame,
  type ResultFrame,
  Rope,
  requestRope,
  scanJson,
  stringOf,
  textOf,
} from '../../jsonrpc/index.js';
import type { CatchUp } from '../../transports/catch-up.js';
import { RpcCall, type RpcListener, type RpcReply } from '../../transports/rpc-call.js';
import { ModernAffinity } from './affinity.js';
import { ModernUpstream } from './changes.js';
import { InputFailed } from './input-requests.js';
import type { ResultPlace } from './kept-results.js';
import { META, MODERN_CODE, NAMED_BY, REMOVED_METHODS } from './names.js';
import { paramHeaderValues, UnsendableArgument } from './param-headers.js';
import { failureOf, namesOwnVersion, subscriptionFailure, wrongEraOf } from './refusals.js';
import { ModernRequests, type RequestsOptions } from './requests.js';
import { resultOutcome, resultTypeOf, validTtl } from './results.js';
import { Rounds } from './rounds.js';
import { SessionTasks } from './session-tasks.js';
import type { TaskNamesOptions } from './task-names.js';
import { declaring } from './task-outcomes.js';
import { ToolIndex, type ToolMap } from './tool-index.js';

export interface ModernOutboundOptions extends RequestsOptions {
  /** For messages to people. */
  readonly name: string;
  readonly discoverMs: number;
  /** Rounds of questions in one call. */
  readonly maxRounds: number;
  readonly tasks: TaskNamesOptions;
  /** Told when the backend has no way to ask clients of this era what its handlers want to ask. */
  readonly onCannotAsk: () => void;
  /** Told of every change that is heard of. */
  readonly onChange: (change: Change) => void;
}

const EMPTY = Buffer.from('{}');
const REMEMBERED = 500;
const RUNS_KEPT_MS = 60_000;
/** What makes a call a task in the legacy era is nothing here. */
const NO_TASK: Edits = new Map([['task', undefined]]);
const NO_TOOLS: ToolMap = new Map();

/** Python's SDK, of a handler that asks in the way of the legacy era: it was begun, and got as far as the question. */
const NO_BACK_CHANNEL = /no back-channel/i;

/** The modern era toward backends: stateless requests with their envelope and headers. */
export class ModernOutbound implements Outbound {
  readonly era = 'modern';
  readonly #options: ModernOutboundOptions;
  readonly #tools = new ToolIndex();
  readonly #hubs: Hubs;
  readonly #patience: Patience;
  readonly #requests: ModernRequests;
  readonly #tasks: SessionTasks;
  /** Which callers the backend makes tasks for. */
  readonly #runs = new LRUCache<string, boolean>({ max: REMEMBERED, ttl: RUNS_KEPT_MS });

  constructor(options: ModernOutboundOptions) {
    this.#options = options;
    this.#requests = new ModernRequests(options);
    this.#tasks = new SessionTasks(
      options.tasks,
      options.name,
      this.#requests,
      async (caller, tool, result) => {
        const tools = await this.#toolsOf(caller);
        return { ...result, objectOutput: tool === undefined ? undefined : tools.get(tool)?.objectOutput };
      },
    );
    this.#patience = new Patience(options.discoverMs);
    this.#hubs = new Hubs((change) => this.#onChange(change));
  }

  call(exchange: Exchange): Promise<Outcome> {
    const { session, era } = exchange.caller;
    if (session !== undefined && !exchange.visiting) this.#affinity(session, exchange.caller);
    const wants = exchange.request.wantsTask === true && !exchange.visiting;
    // Between two sides of this era there is mostly nothing to find out first, and no promise of it to wait for.
    return era === 'modern' && !wants ? this.#carryOut(exchange, undefined) : this.#call(exchange, wants);
  }

  async #call(exchange: Exchange, wants: boolean): Promise<Outcome> {
    if (exchange.caller.era !== 'modern') {
      const own = await this.#answerRemoved(exchange);
      if (own !== undefined) return own;
    }
    if (!wants || !(await abortable(exchange, this.#runsTasks(exchange.caller))))
      return this.#carryOut(exchange, undefined);
    const place = this.#tasks.admit(exchange);
    try {
      return await this.#carryOut(exchange, place);
    } finally {
      place.giveBack();
    }
  }

  /** @param place where the client wants the handle of a task */
  async #carryOut(exchange: Exchange, place: ResultPlace | undefined): Promise<Outcome> {
    const sameEra = exchange.caller.era === 'modern';
    const isCall = !sameEra && exchange.request.method === 'tools/call';
    let refreshed = false;
    let insisted = false;
    let rounds: Rounds | undefined;
    let edits: Edits | undefined = isCall ? NO_TASK : undefined;
    let asker = place === undefined ? exchange.caller : declaring(exchange.caller);
    for (;;) {
      const tools = isCall ? await abortable(exchange, this.#toolsOf(exchange.caller)) : undefined;
      const reply = await this.#send(exchange, asker, tools, edits);
      if (reply.kind === 'answer' && reply.frame.type === 'result') {
        const type = sameEra ? undefined : resultTypeOf(reply.frame);
        if (type === 'task' && asker !== exchange.caller)
          return this.#task(exchange, reply.frame, place !== undefined);
        if (type !== 'input_required') {
          const outcome = this.#result(exchange, reply.frame, tools);
          if (place === undefined) return outcome;
          return this.#tasks.handleOf(exchange, await outcome, place);
        }
        try {
          rounds ??= new Rounds(exchange, this.#options.maxRounds, () => this.#requests.nextId());
          edits = new Map([...(await rounds.next(reply.frame)), ...NO_TASK]);
          continue;
        } catch (error) {
          return roundsOutcome(exchange, error);
        }
      }
      if (
        isCall &&
        asker === exchange.caller &&
        reply.kind === 'answer' &&
        insistsOnTask(reply.frame as ErrorFrame)
      ) {
        asker = declaring(exchange.caller);
        continue;
      }
      // The tool's definition changed since it was read: once more with what it is now.
      const refused = reply.kind === 'answer' && reply.frame.type === 'error' ? reply.frame.code : undefined;
      if (refused === MODERN_CODE.headerMismatch && tools !== undefined && !refreshed) {
        refreshed = true;
        this.#tools.forget(toolKey(exchange.caller));
        continue;
      }
      if (!sameEra && !insisted && namesOwnVersion(reply)) {
        insisted = true;
        continue;
      }
      return this.#error(exchange, reply);
    }
  }

  /** A task that the backend has made of a call, for a client that asked for one or that did not. */
  async #task(exchange: Exchange, frame: ResultFrame, wanted: boolean): Promise<Outcome> {
    if (wanted) return this.#tasks.handle(exchange, frame);
    try {
      return await this.#tasks.carryOut(exchange, frame);
    } catch (error) {
      return roundsOutcome(exchange, error);
    }
  }

  /** Whether the backend makes tasks of calls. A call does not fail for want of that knowledge. */
  async #runsTasks(caller: Caller): Promise<boolean> {
    const key = toolKey(caller);
    const known = this.#runs.get(key);
    if (known !== undefined) return known;
    await this.describe(caller).catch(() => {});
    return this.#runs.get(key) ?? false;
  }

  async describe(caller: Caller): Promise<ServerDescription> {
    if (caller.session !== undefined) this.#affinity(caller.session, caller);
    const { bytes, result } = await this.#patience.wait(() => this.#discover(caller));
    const capabilities = statedCapabilities(bytes, getMember(bytes, result, 'capabilities'));
    this.#runs.set(toolKey(caller), declaresTasks(readCapabilities(capabilities)));
    const instructions = getMember(bytes, result, 'instructions');
    const meta = getMember(bytes, result, '_meta');
    const serverInfo = meta === undefined ? undefined : getMember(bytes, meta, META.serverInfo);
    const ttl = getMember(bytes, result, 'ttlMs');
    return {
      era: 'modern',
      capabilities,
      serverInfo: serverInfo?.kind === 'object' ? textOf(bytes, serverInfo) : undefined,
      instructions: instructions?.kind === 'string' ? textOf(bytes, instructions) : undefined,
      ttlMs: validTtl(bytes, ttl),
      sessions: false,
      result: bytes.subarray(result.start, result.end),
    };
  }

  async #discover(caller: Caller): Promise<ResultFrame> {
    const reply = await this.#requests.request(
      caller,
      'server/discover',
      undefined,
      this.#options.discoverMs,
    );
    if (reply.kind !== 'answer' || reply.frame.type === 'error') throw failureOf(this.#options.name, reply);
    return reply.frame;
  }

  async authenticate(caller: Caller): Promise<void> {
    await this.describe(caller);
  }

  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    return this.#hub(caller).subscribe(filter, subscriber);
  }

  async close(): Promise<void> {
    this.#hubs.close();
  }

  #onChange(change: Change): void {
    if (change.method === LIST_CHANGES.toolsListChanged) this.#tools.clear();
    this.#options.onChange(change);
  }

  #hub(caller: Caller): Hub {
    return this.#hubs.get(toolKey(caller), caller, (listener, latest) => {
      const options = {
        open: (wanted: Rope, rpc: RpcListener) => this.#requests.listen(latest(), wanted, rpc),
        failure: (reply: RpcReply) => subscriptionFailure(this.#options.name, reply),
        ackMs: this.#options.discoverMs,
      };
      return new ModernUpstream(options, listener);
    });
  }

  /**
   * Requests of other eras that this one removed: what they ask for rides on every request, is asked for in other words,
   * or is not to be had. Also refused here is what no header could name.
   */
  async #answerRemoved(exchange: Exchange): Promise<Outcome | undefined> {
    const { method, name } = exchange.request;
    if (method.startsWith('tasks/') && (await this.#runsTasks(exchange.caller)))
      return this.#ofTask(exchange);
    if (!method.startsWith('tasks/') && !REMOVED_METHODS.has(method)) {
      const named = name === undefined && Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined;
      return named === undefined
        ? undefined
        : ownError({ code: CODE.invalidParams, message: `params.${named} must be a string` });
    }
    if (method === 'resources/subscribe' || method === 'resources/unsubscribe') {
      return this.#subscribeResource(exchange);
    }
    if (method === 'logging/setLevel') {
      const { capabilities } = await this.describe(exchange.caller);
      if ('logging' in (JSON.parse(capabilities) as object)) return ownResult(EMPTY, scanJson(EMPTY, 1));
    }
    return ownError({ code: CODE.methodNotFound, message: `Method not found: ${method}` });
  }

  async #ofTask(exchange: Exchange): Promise<Outcome> {
    try {
      return await this.#tasks.answer(exchange);
    } catch (error) {
      if (error instanceof InputFailed) return error.toExchangeError().outcome;
      throw error;
    }
  }

  /** Of a client with a session, which hears of changes on its own stream. */
  async #subscribeResource({ request, caller }: Exchange): Promise<Outcome> {
    const { bytes, node } = request.params;
    const uri = node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, 'uri'));
    if (uri === undefined || caller.session === undefined) {
      return ownError({ code: CODE.invalidParams, message: 'Invalid params: uri must be a string' });
    }
    const affinity = this.#affinity(caller.session, caller);
    if (request.method === 'resources/unsubscribe') await affinity.unsubscribe(uri);
    else if (!(await affinity.subscribe(uri))) {
      return ownError({ code: CODE.invalidParams, message: `The server does not tell of changes of ${uri}` });
    }
    return ownResult(EMPTY, scanJson(EMPTY, 1));
  }

  #affinity(client: ClientSession, caller: Caller): ModernAffinity {
    if (client.affinity instanceof ModernAffinity) {
      if (client.affinity.touch(caller)) this.#hubs.touch(toolKey(caller), caller);
      return client.affinity;
    }
    void client.affinity?.end();
    const affinity = new ModernAffinity(client, caller, (who, subscriber) => this.#hub(who).join(subscriber));
    client.affinity = affinity;
    return affinity;
  }

  /**
   * @param asker the caller, with what the gateway can do in its place
   * @param edits to the params, such as what a further round adds
   */
  async #send(
    exchange: Exchange,
    asker: Caller,
    tools: ToolMap | undefined,
    edits: Edits | undefined,
  ): Promise<RpcReply> {
    const { request, caller } = exchange;
    const { transport, ticker } = this.#options;
    const sameEra = caller.era === 'modern';
    const id = sameEra ? request.id : String(this.#requests.nextId());
    const headers = this.#requests.headers(caller, request.method, request.name);
    if (sameEra) for (const part of request.paramHeaders) headers.push(part);
    else if (tools !== undefined) headers.push(...callHeaders(exchange, tools));
    const body = sameEra
      ? forwarded(exchange)
      : requestRope(
          id as never,
          request.method,
          rewriteParams(request.params, this.#requests.envelope(asker), edits),
        );
    const startedAt = performance.now();
    const rpc = new RpcCall(id, ticker, new CallListener(exchange, (change) => this.#onChange(change)));
    exchange.onCancel((reason) => rpc.abort(reason));
    const reply = await rpc.post(transport, headers, body, isSafe(request.method)).reply;
    exchange.onCancel(undefined);
    exchange.notes.backendMs = performance.now() - startedAt;
    if (exchange.cancelled !== undefined) throw cancelled(exchange.cancelled);
    return reply;
  }

  /** The caller's tools. A call does not fail for want of the list: it may need nothing that the list tells. */
  #toolsOf(caller: Caller): Promise<ToolMap> {
    const tools = this.#tools.get(toolKey(caller), async (cursor) => {
      const params = cursor === undefined ? undefined : { cursor };
      const reply = await this.#requests.request(caller, 'tools/list', params, this.#options.discoverMs);
      if (reply.kind !== 'answer') throw failureOf(this.#options.name, reply);
      return reply.frame.type === 'result' ? reply.frame : undefined;
    });
    return tools.catch(() => NO_TOOLS);
  }

  #result(
    exchange: Exchange,
    frame: ResultFrame,
    tools: ToolMap | undefined,
  ): ResultOutcome | Promise<ResultOutcome> {
    if (getMember(frame.bytes, frame.result, 'resultType') === undefined) {
      this.#options.transport.quirk('leaves resultType out of its results');
    }
    const outcome = resultOutcome(exchange, frame, tools);
    const { request, caller } = exchange;
    if (caller.era === 'modern' || request.method !== 'tools/list') return outcome;
    return this.#runsTasks(caller).then((takesTasks) => ({ ...outcome, takesTasks }));
  }

  #error(exchange: Exchange, reply: RpcReply): Outcome {
    if (reply.kind !== 'answer' || reply.frame.type === 'result') throw failureOf(this.#options.name, reply);
    const { frame, status } = reply;
    const sameEra = exchange.caller.era === 'modern';
    const outcome = backendError(frame, status, sameEra ? 'modern' : 'none');
    const forClient = refusalForClient(status, reply.headers, frame.message, outcome);
    if (forClient !== undefined) throw forClient;
    if (frame.code === CODE.invalidRequest && NO_BACK_CHANNEL.test(frame.message)) {
      this.#options.onCannotAsk();
      return outcome;
    }
    const wrongEra = wrongEraOf(this.#options.name, frame, status, outcome);
    if (wrongEra !== undefined) throw wrongEra;
    if (
      !sameEra &&
      (frame.code === MODERN_CODE.headerMismatch || frame.code === MODERN_CODE.unsupportedVersion)
    ) {
      throw badGateway(
        `${this.#options.name} refused the gateway's request: ${frame.code} ${frame.message}`,
        200,
      );
    }
    return outcome;
  }
}

/** Questions that failed are the tool's failure, which its caller can read; other requests have errors only. */
function roundsOutcome(exchange: Exchange, error: unknown): Outcome {
  if (!(error instanceof InputFailed)) throw error;
  const { outcome } = error.toExchangeError();
  if (exchange.request.method !== 'tools/call') return outcome;
  const bytes = Buffer.from(
    JSON.stringify({ content: [{ type: 'text', text: outcome.message }], isError: true }),
  );
  return ownResult(bytes, scanJson(bytes, 2));
}

/** What comes on the answer stream of a call: notifications for the client, and nothing else in this era. */
class CallListener implements RpcListener {
  readonly #exchange: Exchange;
  readonly #onChange: (change: Change) => void;

  constructor(exchange: Exchange, onChange: (change: Change) => void) {
    this.#onChange = onChange;
    this.#exchange = exchange;
  }

  onNotification(frame: NotificationFrame): CatchUp | undefined {
    if (isChange(frame.method)) this.#onChange(changeOf(frame));
    const exchange = this.#exchange;
    const message = serverMessageFor(exchange, frame, exchange.request.progressToken);
    if (message === undefined || exchange.notify(message)) return undefined;
    return (resume) => exchange.onDrain(resume);
  }

  /** The revision forbids requests on this stream (basic/transports, "Receiving Messages"). */
  onRequest(_frame: RequestFrame): void {}
}

function forwarded(exchange: Exchange): Rope {
  const { request } = exchange;
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

function toolKey(caller: Caller): string {
  return `${caller.principal} ${caller.capabilities.key}`;
}
