import type { Caller } from '../../../exchange/caller.js';
import { type Change, LIST_CHANGES } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import type { Hub } from '../../../exchange/changes/hub.js';
import { Hubs } from '../../../exchange/changes/hubs.js';
import type { Subscriber, Subscription } from '../../../exchange/changes/subscription.js';
import type { ClientSession } from '../../../exchange/client-session.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { CallRouting, Outbound, ServerDescription } from '../../../exchange/outbound.js';
import type { Outcome } from '../../../exchange/outcome.js';
import { abortable, waitFor } from '../../../exchange/utils/abortable.js';
import type { Rope } from '../../../jsonrpc/index.js';
import type { RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import type { BackendSideOptions } from '../../era.js';
import { ModernChangeSource } from './change-source.js';
import { forwardCall } from './forwarded-call.js';
import type { ModernBackend } from './modern-backend.js';
import { ModernCall } from './modern-call.js';
import { passedOnFailure } from './refusals.js';
import { RemovedMethods } from './removed-methods.js';
import { ModernRequests } from './requests.js';
import { callerKey, ServerDescriptions } from './server-description.js';
import { ModernSessionBinding } from './session-binding.js';
import { SessionTasks } from './session-tasks.js';

/** The backend side of the modern era on one route: stateless requests, each with its envelope and headers. */
export class ModernOutbound implements Outbound {
  readonly era = 'modern';
  readonly #options: BackendSideOptions;
  readonly #backend: ModernBackend;
  readonly #hubs: Hubs;
  readonly #removed: RemovedMethods;

  constructor(options: BackendSideOptions) {
    const { name, transport, ticker, ownInfo, handshakeMs, route, sealer, questions } = options;
    this.#options = options;
    const onChange = (change: Change): void => this.#onChange(change);
    const requests = new ModernRequests(options);
    const descriptions = new ServerDescriptions(options, requests, handshakeMs);
    const tasks = new SessionTasks({
      ...options.tasks,
      route,
      sealer,
      ticker,
      requests,
      backend: options,
      onFault: options.onFault,
      describeResult: async (caller, tool, result) => {
        const tools = await descriptions.toolsOf(caller);
        return { ...result, objectOutput: tool === undefined ? undefined : tools.get(tool)?.objectOutput };
      },
    });
    const { maxRounds } = questions;
    this.#backend = {
      route,
      name,
      transport,
      ticker,
      ownInfo,
      maxRounds,
      requests,
      descriptions,
      tasks,
      onChange,
    };
    this.#hubs = new Hubs({ onChange, onFault: options.onFault });
    this.#removed = new RemovedMethods({
      backend: this.#backend,
      describe: (caller, signal) => this.describe(caller, signal),
      bindingOf: (session, caller) => this.#bindingOf(session, caller),
    });
  }

  call(exchange: Exchange, { viaOtherEra = false }: CallRouting = {}): Promise<Outcome> {
    const { session, era } = exchange.caller;
    if (session !== undefined && !viaOtherEra) this.#bindingOf(session, exchange.caller);
    // A modern client's request is sent at once, since nothing has to be found out first.
    return era === 'modern'
      ? forwardCall(exchange, this.#backend)
      : this.#translate(exchange, { viaOtherEra });
  }

  async #translate(
    exchange: Exchange,
    { viaOtherEra }: Required<Pick<CallRouting, 'viaOtherEra'>>,
  ): Promise<Outcome> {
    const outcome = await this.#removed.outcomeOf(exchange);
    if (outcome !== undefined) return outcome;
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

  async describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription> {
    if (caller.session !== undefined) this.#bindingOf(caller.session, caller);
    return waitFor(this.#backend.descriptions.describe(caller), signal);
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

  /** The hub that the caller shares with others of the same credential and capabilities. */
  #hub(caller: Caller): Hub {
    return this.#hubs.get(callerKey(caller), caller, (listener, latest) => {
      const options = {
        open: (wanted: Rope, rpc: RpcListener) => this.#backend.requests.listen(latest(), wanted, rpc),
        failure: (reply: RpcReply) => passedOnFailure(this.#options, reply),
        ackMs: this.#options.handshakeMs,
        route: this.#options.route,
      };
      return new ModernChangeSource(options, listener);
    });
  }

  /** The binding of a legacy session to this backend; replaces one that is for another backend side. */
  #bindingOf(client: ClientSession, caller: Caller): ModernSessionBinding {
    if (client.binding instanceof ModernSessionBinding) {
      if (client.binding.touch(caller)) this.#hubs.touch(callerKey(caller), caller);
      return client.binding;
    }
    void client.binding?.end();
    const join = (who: Caller, subscriber: Subscriber): Subscription => this.#hub(who).join(subscriber);
    const binding = new ModernSessionBinding(client, caller, join, this.#options.onFault);
    client.bind(binding);
    return binding;
  }
}
