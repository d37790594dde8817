import type { Caller } from '../../../exchange/caller.js';
import type { ClientSession, SealedBackendSession } from '../../../exchange/client-session.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { ServerDescription } from '../../../exchange/outbound.js';
import type { Outcome } from '../../../exchange/outcome.js';
import { mayBeAsked } from '../../../exchange/server-requests.js';
import { abortable, waitFor } from '../../../exchange/utils/abortable.js';
import type { NotificationFrame } from '../../../jsonrpc/index.js';
import { unknownInfo } from '../wire/initialize-info.js';
import type { HandshakeParams } from './handshake.js';
import type { LegacyBackend } from './legacy-backend.js';
import { LegacyCall } from './legacy-call.js';
import { mustRepeat } from './repeat.js';
import { outcomeOf } from './replies.js';
import type { Roots } from './roots.js';
import { describe } from './server-description.js';
import { BackendSession } from './session.js';
import { LegacySessionBinding } from './session-binding.js';

export interface BoundCallsOptions {
  readonly backend: LegacyBackend;
  readonly roots: Roots;
  /** How long results may be kept, by method. */
  readonly ttlMs: ReadonlyMap<string, number>;
  /** JSON text of the Implementation object for clients that name none. */
  readonly ownInfo: string;
  readonly open: (params: HandshakeParams) => Promise<BackendSession>;
  /** Called for each change that a client is notified of. */
  readonly onChange: (frame: NotificationFrame) => void;
}

/** During which the server sends the requests of a task. */
const TASK_RESULT = 'tasks/result';

/** The calls of clients that hold a session, on the backend session that is bound to it. */
export class BoundCalls {
  readonly #options: BoundCallsOptions;

  constructor(options: BoundCallsOptions) {
    this.#options = options;
  }

  get onChange(): (frame: NotificationFrame) => void {
    return this.#options.onChange;
  }

  get onFault(): (error: unknown) => void {
    return this.#options.backend.onFault;
  }

  get keepGetStreamMs(): number {
    return this.#options.backend.times.keepGetStreamMs;
  }

  call(exchange: Exchange, client: ClientSession): Promise<Outcome> {
    const binding = this.#bindingOf(client, exchange.caller);
    exchange.notes.session = 'own';
    const { method } = exchange.request;
    if (!mayBeAsked(exchange.caller, method) && method !== TASK_RESULT)
      return this.#callOn(binding, exchange);
    const expectation = binding.expectServerRequests();
    return this.#callOn(binding, exchange).finally(() => expectation[Symbol.dispose]());
  }

  async describe(caller: Caller, client: ClientSession, signal?: AbortSignal): Promise<ServerDescription> {
    const binding = this.#bindingOf(client, caller);
    const session = await waitFor(binding.session(), signal);
    const { lists, subscribe } = session.info.changes;
    // Changes are declared to the client only if there is a stream to notify them on.
    if (!session.backend.knowsGetStream && (lists.size > 0 || subscribe))
      await waitFor(binding.tryGetStream(), signal);
    return describe(session, 'legacy');
  }

  async authenticate(caller: Caller, client: ClientSession): Promise<void> {
    const known = client.binding instanceof LegacySessionBinding ? client.binding : undefined;
    const binding = known ?? new LegacySessionBinding(this, client, caller);
    await binding.authenticate(caller);
    if (known === undefined) this.#bind(client, binding);
  }

  /** Opens a session for a client session, the first one or one that replaces it. */
  open(caller: Caller): Promise<BackendSession> {
    return this.#options.open({
      revision: caller.revision,
      capabilities: caller.capabilities.text,
      clientInfo: caller.clientInfo ?? this.#options.ownInfo,
      forwarded: caller.forwarded,
    });
  }

  /** Continues a session that another process of the gateway opened. */
  restore({ id, revision, cookies }: SealedBackendSession): BackendSession {
    const state = { firstRequestId: randomFirstId(), cookies };
    return new BackendSession(this.#options.backend, unknownInfo(revision), id, state);
  }

  async #callOn(binding: LegacySessionBinding, exchange: Exchange): Promise<Outcome> {
    const { roots, onChange, ttlMs } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const session = binding.ready ?? (await abortable(exchange.signal, binding.session()));
      const opening = session.getStreamSettled();
      if (opening !== undefined) await abortable(exchange.signal, opening);
      const reply = await new LegacyCall(exchange, session, roots, onChange).run();
      if (await mustRepeat(reply, session, attempt, exchange)) {
        binding.forget(session);
        continue;
      }
      if (reply.kind === 'response' && reply.frame.type === 'result') binding.noteAccepted(exchange.request);
      return outcomeOf(exchange, session, reply, ttlMs);
    }
  }

  #bindingOf(client: ClientSession, caller: Caller): LegacySessionBinding {
    if (client.binding instanceof LegacySessionBinding) {
      client.binding.update(caller);
      return client.binding;
    }
    const binding = new LegacySessionBinding(this, client, caller);
    this.#bind(client, binding);
    return binding;
  }

  #bind(client: ClientSession, binding: LegacySessionBinding): void {
    void client.binding?.end();
    client.bind(binding);
  }
}

/** Another process may still use the session, so the request ids of the two must differ. */
function randomFirstId(): number {
  return 1_000_000 * (1 + Math.floor(Math.random() * 1_000_000));
}
