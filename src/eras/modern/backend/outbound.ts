import { abortable } from '../../../exchange/abortable.js';
import { type Change, type ChangeFilter, LIST_CHANGES } from '../../../exchange/changes.js';
import { CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { Hub, Subscriber, Subscription } from '../../../exchange/hub.js';
import { Hubs } from '../../../exchange/hubs.js';
import type { CallRouting, Outbound, ServerDescription } from '../../../exchange/outbound.js';
import { type Outcome, ownError, ownResult } from '../../../exchange/outcome.js';
import type { Caller, ClientSession } from '../../../exchange/types.js';
import { getMember, type Rope, scanJson, stringOf } from '../../../jsonrpc/index.js';
import type { RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import type { BackendSideOptions } from '../../era.js';
import { InputFailed } from '../wire/input-requests.js';
import { NAMED_BY, REMOVED_METHODS } from '../wire/names.js';
import { ModernChangeSource } from './change-source.js';
import { forwardCall } from './forwarded-call.js';
import type { ModernBackend } from './modern-backend.js';
import { ModernCall } from './modern-call.js';
import { passedOnFailure } from './refusals.js';
import { ModernRequests } from './requests.js';
import { callerKey, ServerDescriptions } from './server-description.js';
import { ModernSessionBinding } from './session-binding.js';
import { SessionTasks } from './session-tasks.js';

const EMPTY = Buffer.from('{}');

/** The backend side of the modern era on one route: stateless requests, each with its envelope and headers. */
export class ModernOutbound implements Outbound {
  readonly era = 'modern';
  readonly #options: BackendSideOptions;
  readonly #backend: ModernBackend;
  readonly #hubs: Hubs;

  constructor(options: BackendSideOptions) {
    const { name, transport, ticker, ownInfo, handshakeMs, route, sealer, questions } = options;
    this.#options = options;
    const onChange = (change: Change): void => this.#onChange(change);
    const requests = new ModernRequests(options);
    const descriptions = new ServerDescriptions(name, requests, handshakeMs);
    const tasks = new SessionTasks({
      ...options.tasks,
      route,
      sealer,
      ticker,
      requests,
      backendName: name,
      onFault: options.onFault,
      describeResult: async (caller, tool, result) => {
        const tools = await descriptions.toolsOf(caller);
        return { ...result, objectOutput: tool === undefined ? undefined : tools.get(tool)?.objectOutput };
      },
    });
    const { maxRounds } = questions;
    this.#backend = { name, transport, ticker, ownInfo, maxRounds, requests, descriptions, tasks, onChange };
    this.#hubs = new Hubs({ onChange, onFault: options.onFault });
  }

  call(exchange: Exchange, { viaOtherEra = false }: CallRouting = {}): Promise<Outcome> {
    const { session, era } = exchange.caller;
    if (session !== undefined && !viaOtherEra) this.#binding(session, exchange.caller);
    // A modern client's request is sent at once, since nothing has to be found out first.
    return era === 'modern' ? forwardCall(exchange, this.#backend) : this.#translate(exchange, viaOtherEra);
  }

  async #translate(exchange: Exchange, viaOtherEra: boolean): Promise<Outcome> {
    const own = await this.#answerRemoved(exchange);
    if (own !== undefined) return own;
    const wantsTask = exchange.request.wantsTask === true && !viaOtherEra;
    const { descriptions, tasks } = this.#backend;
    if (!wantsTask || !(await abortable(exchange.signal, descriptions.makesTasks(exchange.caller))))
      return new ModernCall(exchange, this.#backend, undefined).run();
    const place = tasks.reserve(exchange);
    try {
      return await new ModernCall(exchange, this.#backend, place).run();
    } finally {
      place.release();
    }
  }

  async describe(caller: Caller): Promise<ServerDescription> {
    if (caller.session !== undefined) this.#binding(caller.session, caller);
    return this.#backend.descriptions.describe(caller);
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
    if (change.method === LIST_CHANGES.toolsListChanged) this.#backend.descriptions.forgetTools();
    this.#options.onChange(change);
  }

  #hub(caller: Caller): Hub {
    return this.#hubs.get(callerKey(caller), caller, (listener, latest) => {
      const options = {
        open: (wanted: Rope, rpc: RpcListener) => this.#backend.requests.listen(latest(), wanted, rpc),
        failure: (reply: RpcReply) => passedOnFailure(this.#options.name, reply),
        ackMs: this.#options.handshakeMs,
      };
      return new ModernChangeSource(options, listener);
    });
  }

  /**
   * The outcome of requests that this era does not have, and of requests without the name that their header needs;
   * undefined for any other request.
   */
  async #answerRemoved(exchange: Exchange): Promise<Outcome | undefined> {
    const { method, name } = exchange.request;
    if (method.startsWith('tasks/') && (await this.#backend.descriptions.makesTasks(exchange.caller)))
      return this.#taskRequest(exchange);
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

  async #taskRequest(exchange: Exchange): Promise<Outcome> {
    try {
      return await this.#backend.tasks.answer(exchange);
    } catch (error) {
      if (error instanceof InputFailed) return error.toExchangeError().outcome;
      throw error;
    }
  }

  /** For a client with a session, which receives changes on its standalone GET stream. */
  async #subscribeResource({ request, caller }: Exchange): Promise<Outcome> {
    const { bytes, node } = request.params;
    const uri = node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, 'uri'));
    if (uri === undefined || caller.session === undefined) {
      return ownError({ code: CODE.invalidParams, message: 'Invalid params: uri must be a string' });
    }
    const binding = this.#binding(caller.session, caller);
    if (request.method === 'resources/unsubscribe') await binding.unsubscribe(uri);
    else if (!(await binding.subscribe(uri))) {
      return ownError({ code: CODE.invalidParams, message: `The server does not tell of changes of ${uri}` });
    }
    return ownResult(EMPTY, scanJson(EMPTY, 1));
  }

  #binding(client: ClientSession, caller: Caller): ModernSessionBinding {
    if (client.binding instanceof ModernSessionBinding) {
      if (client.binding.touch(caller)) this.#hubs.touch(callerKey(caller), caller);
      return client.binding;
    }
    void client.binding?.end();
    const join = (who: Caller, subscriber: Subscriber): Subscription => this.#hub(who).join(subscriber);
    const binding = new ModernSessionBinding(client, caller, join, this.#options.onFault);
    client.binding = binding;
    return binding;
  }
}
