import { abortable } from '../../exchange/abortable.js';
import { mayBeAsked } from '../../exchange/asking.js';
import { CACHEABLE } from '../../exchange/cache-key.js';
import { type Change, type ChangeFilter, changeOf, LIST_CHANGES } from '../../exchange/changes.js';
import { badGateway, CODE } from '../../exchange/errors.js';
import type { Exchange } from '../../exchange/exchange.js';
import { refusalForClient } from '../../exchange/http-refusal.js';
import type { Subscriber, Subscription } from '../../exchange/hub.js';
import type { Outbound, ServerDescription } from '../../exchange/outbound.js';
import { OtherSide, WrongEra } from '../../exchange/outbound.js';
import { backendError, type ErrorOutcome, type Outcome, type ResultOutcome } from '../../exchange/outcome.js';
import { Patience } from '../../exchange/patience.js';
import { insistsOnTask } from '../../exchange/tasks.js';
import type {
  Caller,
  ClientSession,
  ForwardedHeaders,
  LogLevel,
  Revision,
  SealedBackendSession,
} from '../../exchange/types.js';
import { isLogLevel, LOG_LEVELS } from '../../exchange/types.js';
import {
  type ErrorFrame,
  getMember,
  type NotificationFrame,
  type ResultFrame,
  type Rope,
  scanJson,
  stringOf,
} from '../../jsonrpc/index.js';
import { noAnswerError } from '../../transports/no-answer.js';
import { type RpcReply, SILENT } from '../../transports/rpc-call.js';
import { ClientAffinity } from './affinity.js';
import type { LegacyBackend } from './backend.js';
import { BackendSession } from './backend-session.js';
import { LegacyCall } from './call.js';
import { promisesOf } from './changes.js';
import { neutralResult, withoutPromises } from './codec.js';
import { freshnessOf } from './freshness.js';
import { type HandshakeParams, HandshakeRefused, type InitializeInfo, openSession } from './handshake.js';
import { type ConfiguredLoss, LossTable } from './loss.js';
import { type Lease, type PoolOptions, Waiter } from './pool.js';
import { PooledSessions } from './pooled-sessions.js';
import { Roots, type RootsPolicy } from './roots.js';
import { SetUp } from './set-up.js';
import { neutralTaskCapabilities } from './task-codec.js';
import { LegacyTasks, type OptionalTasks } from './tasks.js';

export interface LegacyOutboundOptions extends PoolOptions {
  /** `call` gives each call of a client without a session one of its own. */
  readonly isolation: 'principal' | 'call';
  /** Answers that mean a lost session, beside those that are known to. */
  readonly lost: readonly ConfiguredLoss[];
  readonly roots: RootsPolicy;
  readonly optionalTasks: OptionalTasks;
  /** How long results are good for, by method; what is not listed is judged by whether changes are heard of. */
  readonly ttlMs: Readonly<Record<string, number>>;
  /** JSON text of the Implementation that stands in for a client that does not name itself. */
  readonly ownInfo: string;
  /** Told of every change that is heard of. */
  readonly onChange: (change: Change) => void;
}

/** Codes of a 4xx that prove that the backend is of the other era, and did not carry out the request. */
const MODERN_CODES: ReadonlySet<number> = new Set([-32020, -32022]);
/** Codes of a 4xx that servers of the other era use to the same end, and any server for what they say. */
const AMBIGUOUS_CODES: ReadonlySet<number> = new Set([CODE.invalidParams, CODE.methodNotFound]);

/** The legacy era toward backends: handshakes, sessions, and the calls on them. */
export class LegacyOutbound implements Outbound {
  readonly era = 'legacy';
  readonly #backend: LegacyBackend;
  readonly #options: LegacyOutboundOptions;
  readonly #pooled: PooledSessions;
  readonly setUp = new SetUp();
  readonly #roots: Roots;
  readonly #tasks: LegacyTasks;
  readonly #levels = new WeakMap<BackendSession, LogLevel>();
  readonly #patience: Patience;

  constructor(backend: LegacyBackend, options: LegacyOutboundOptions) {
    this.#backend = backend;
    this.#options = options;
    this.#patience = new Patience(backend.handshakeMs);
    backend.losses = new LossTable(options.lost, backend.transport.ownsSessions);
    this.#roots = new Roots(options.roots);
    this.#tasks = new LegacyTasks(this.#roots, options.optionalTasks);
    this.#pooled = new PooledSessions({
      ...options,
      onChange: (change) => this.#changed(change),
      roots: this.#roots,
      setUp: this.setUp,
      open: (params) => this.#open(params),
    });
  }

  call(exchange: Exchange): Promise<Outcome> {
    const { session, era } = exchange.caller;
    const { method } = exchange.request;
    // Tasks of the caller's era are kept on its side, which knows all that there are.
    if (era !== 'legacy' && method.startsWith('tasks/')) return this.#unknownTask(exchange);
    return session === undefined ? this.#callPooled(exchange) : this.#callOwn(exchange, session);
  }

  async describe(caller: Caller): Promise<ServerDescription> {
    if (caller.session !== undefined) {
      const affinity = this.#affinity(caller.session, caller);
      const session = await affinity.session();
      if (!this.#backend.knowsFeed && promisesAny(session)) await affinity.tryFeed();
      return describe(session, true);
    }
    const lease = await this.#pooled.lease(caller);
    try {
      await lease.session.feedSettled();
      return describe(lease.session, false);
    } finally {
      lease.release();
    }
  }

  async authenticate(caller: Caller): Promise<void> {
    const { session: client } = caller;
    if (client === undefined) {
      await this.describe(caller);
      return;
    }
    const known = client.affinity instanceof ClientAffinity ? client.affinity : undefined;
    const affinity = known ?? new ClientAffinity(this, client, caller);
    await affinity.authenticate(caller);
    if (known === undefined) this.#attach(client, affinity);
  }

  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    return this.#pooled.subscribe(caller, filter, subscriber);
  }

  async close(): Promise<void> {
    await this.#pooled.close();
  }

  /** A change was told of on a stream that belongs to one client, which hears of it there. */
  readonly onChange = (frame: NotificationFrame): void => this.#changed(changeOf(frame));

  #changed(change: Change): void {
    if (change.method === LIST_CHANGES.toolsListChanged) this.#tasks.forget();
    this.#options.onChange(change);
  }

  async #unknownTask(exchange: Exchange): Promise<Outcome> {
    const lease = await this.#leaseFor(exchange, undefined);
    try {
      return this.#tasks.unknown(exchange, lease.session);
    } finally {
      lease.release();
    }
  }

  /** Opens a session for a client session; used by its affinity, also to replace a lost one. */
  open(caller: Caller): Promise<BackendSession> {
    return this.#open({
      revision: caller.revision,
      capabilities: caller.capabilities.text,
      clientInfo: caller.clientInfo ?? this.#options.ownInfo,
      forwarded: caller.forwarded,
    });
  }

  /** Takes up a session that another process of the gateway opened. */
  restore({ id, revision, cookies }: SealedBackendSession): BackendSession {
    const session = new BackendSession(this.#backend, restoredInfo(revision), id, RESTORED_IDS_FROM());
    session.cookies = cookies;
    return session;
  }

  /** Tries credentials on a session with `ping`, which every server answers (basic/utilities/ping). */
  async accepts(session: BackendSession, forwarded: ForwardedHeaders): Promise<boolean> {
    const { name, handshakeMs } = this.#backend;
    const { rpc, done } = session.request('ping', () => undefined, forwarded, SILENT);
    const timer = setTimeout(() => rpc.abort(`no answer to ping within ${handshakeMs} ms`), handshakeMs);
    const reply = await done.finally(() => clearTimeout(timer));
    if (reply.kind === 'failed') throw noAnswerError(name, reply);
    const said =
      reply.kind === 'no-answer' ? reply.text : reply.frame.type === 'error' ? reply.frame.message : '';
    const forClient = refusalForClient(reply.status, reply.headers, said);
    if (forClient !== undefined) throw forClient;
    if (this.#backend.losses.saysLost(reply, session.id)) {
      session.drop();
      return false;
    }
    if (reply.status >= 500) throw badGateway(`${name} answered HTTP ${reply.status}: ${said.slice(0, 200)}`);
    if (reply.kind === 'answer' && reply.frame.type === 'error' && reply.status >= 400) {
      rejectWrongEra(name, session, reply.frame, backendError(reply.frame, reply.status, 'none'));
    }
    return true;
  }

  /** A call of a client with a session: on the one backend session that belongs to it. */
  #callOwn(exchange: Exchange, client: ClientSession): Promise<Outcome> {
    const affinity = this.#affinity(client, exchange.caller);
    exchange.notes.session = 'own';
    const { method } = exchange.request;
    if (!mayBeAsked(exchange.caller, method) && method !== TASK_RESULT)
      return this.#callOn(affinity, exchange);
    const over = affinity.expectQuestions();
    return this.#callOn(affinity, exchange).finally(over);
  }

  async #callOn(affinity: ClientAffinity, exchange: Exchange): Promise<Outcome> {
    for (let attempt = 0; ; attempt++) {
      const session = affinity.ready ?? (await abortable(exchange, affinity.session()));
      const settled = session.feedSettled();
      if (settled !== undefined) await settled;
      const reply = await new LegacyCall(exchange, session, this.#roots, this.onChange).run();
      const again = this.#mayRepeat(reply, session, attempt);
      if (again) {
        affinity.replace(session);
        continue;
      }
      if (reply.kind === 'answer' && reply.frame.type === 'result') rememberSetUp(affinity, exchange);
      return this.#outcome(exchange, session, reply);
    }
  }

  /** A call of a client without a session: on one that the gateway holds. */
  async #callPooled(exchange: Exchange): Promise<Outcome> {
    for (let attempt = 0; ; attempt++) {
      const { method } = exchange.request;
      const ready = this.#pooled.ready(exchange.caller, method);
      const lease = ready ?? (await this.#leaseFor(exchange, method));
      const { session } = lease;
      exchange.notes.session = session.id === undefined ? 'none' : lease.use;
      const onChange = (frame: NotificationFrame): void => this.#pooled.changed(exchange.caller, frame);
      const call = new LegacyCall(exchange, session, this.#roots, onChange);
      let kept = false;
      try {
        if (exchange.caller.logLevel !== undefined)
          await abortable(exchange, this.#raiseLevel(session, exchange.caller.logLevel, exchange.caller));
        if (lease.use !== 'shared') {
          await session.feedSettled();
          session.holder = call;
          exchange.onParked = (parked) => lease.park(parked);
        }
        const tasks = this.#tasks;
        if (tasks.runs(session) && (await abortable(exchange, tasks.wants(exchange, session)))) {
          const done = await tasks.carryOut(exchange, { lease, call, onChange });
          kept = done.kept;
          if (done.outcome !== undefined) return done.outcome;
          if (this.#mayRepeat(done.reply, session, attempt)) continue;
          return this.#outcome(exchange, session, done.reply);
        }
        const reply = await call.run();
        if (this.#mayRepeat(reply, session, attempt)) continue;
        return this.#outcome(exchange, session, reply);
      } finally {
        exchange.onParked = undefined;
        if (!kept) {
          session.holder = undefined;
          lease.release();
        }
      }
    }
  }

  #leaseFor(exchange: Exchange, method: string | undefined): Promise<Lease> {
    const waiter = new Waiter();
    const lease = this.#pooled.lease(exchange.caller, waiter, method);
    return abortable(exchange, lease, { leave: () => waiter.abandon(), late: (late) => late.release() });
  }

  /**
   * Whether a request is to be sent again on a new session: once, and only after a refusal that proves that it was not
   * carried out.
   * @throws ExchangeError when the backend does not know the new session either
   */
  #mayRepeat(reply: RpcReply, session: BackendSession, attempt: number): boolean {
    if (this.#backend.losses.saysLost(reply, session.id)) {
      if (attempt === 0) {
        session.drop();
        return true;
      }
      // At 200 it was the tool that spoke of a session of its own.
      if (reply.kind === 'failed' || reply.status < 400) return false;
      session.drop();
      throw badGateway(`${this.#backend.name} does not know the session that it has just opened`);
    }
    return false;
  }

  #outcome(exchange: Exchange, session: BackendSession, reply: RpcReply): Outcome {
    if (reply.kind !== 'answer') {
      if (reply.kind === 'no-answer') {
        const forClient = refusalForClient(reply.status, reply.headers, reply.text);
        if (forClient !== undefined) throw forClient;
      }
      throw noAnswerError(this.#backend.name, reply);
    }
    const { frame } = reply;
    if (frame.type === 'result') return resultOutcome(exchange, session, frame, this.#options.ttlMs);
    const outcome = backendError(frame, reply.status, exchange.caller.era === 'legacy' ? 'legacy' : 'none');
    const forClient = refusalForClient(reply.status, reply.headers, frame.message, outcome);
    if (forClient !== undefined) throw forClient;
    // Servers that speak both eras may have tasks in the other one alone.
    if (insistsOnTask(frame)) throw new OtherSide(outcome);
    if (reply.status >= 400 && reply.status < 500)
      rejectWrongEra(this.#backend.name, session, frame, outcome);
    return outcome;
  }

  #affinity(client: ClientSession, caller: Caller): ClientAffinity {
    if (client.affinity instanceof ClientAffinity) {
      client.affinity.touch(caller);
      return client.affinity;
    }
    const affinity = new ClientAffinity(this, client, caller);
    this.#attach(client, affinity);
    return affinity;
  }

  #attach(client: ClientSession, affinity: ClientAffinity): void {
    void client.affinity?.end();
    client.affinity = affinity;
  }

  async #open(params: HandshakeParams): Promise<BackendSession> {
    try {
      return await this.#patience.wait(() => openSession(this.#backend, params));
    } catch (error) {
      if (!(error instanceof HandshakeRefused)) throw error;
      const { reply } = error;
      if (reply.kind !== 'failed') {
        const said = reply.kind === 'answer' ? (reply.frame as ErrorFrame).message : reply.text;
        const forClient = refusalForClient(reply.status, reply.headers, said);
        if (forClient !== undefined) throw forClient;
      }
      const isProof = reply.kind === 'answer' && MODERN_CODES.has((reply.frame as ErrorFrame).code);
      throw new WrongEra(error.message, undefined, isProof);
    }
  }

  /** Log messages are asked for per session; a shared one gets the most talkative level that any call asked for. */
  async #raiseLevel(session: BackendSession, logLevel: LogLevel, caller: Caller): Promise<void> {
    if (!session.info.capabilities.includes('"logging"')) return;
    const current = this.#levels.get(session);
    if (current !== undefined && LOG_LEVELS.indexOf(current) <= LOG_LEVELS.indexOf(logLevel)) return;
    this.#levels.set(session, logLevel);
    // The call goes on without log messages; what is wrong with the session it will find out itself.
    const asked = this.setUp.ask(session, 'logging/setLevel', { level: logLevel }, caller.forwarded);
    await asked.catch(() => this.#levels.delete(session));
  }
}

/** During which a server may ask as well: what the task wants to know. */
const TASK_RESULT = 'tasks/result';
const SETS_UP: ReadonlySet<string> = new Set([
  'resources/subscribe',
  'resources/unsubscribe',
  'logging/setLevel',
]);

function rememberSetUp(affinity: ClientAffinity, { request }: Exchange): void {
  if (!SETS_UP.has(request.method)) return;
  const { bytes, node } = request.params;
  const param = (key: string): string | undefined =>
    node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, key));
  const level = param('level');
  affinity.remember(request.method, param('uri'), isLogLevel(level) ? level : undefined);
}

/** Another process may still use the session: its ids and these must not meet. */
const RESTORED_IDS_FROM = (): number => 1_000_000 * (1 + Math.floor(Math.random() * 1_000_000));

function restoredInfo(revision: Revision): InitializeInfo {
  const bytes = Buffer.from('{}');
  const result = scanJson(bytes, 1);
  const told = { capabilities: '{}', serverInfo: undefined, instructions: undefined };
  return { revision, settled: true, bytes, result, ...told };
}

/** @throws WrongEra where a refusal means, or may mean, that the backend speaks the other era by now */
function rejectWrongEra(
  name: string,
  session: BackendSession,
  frame: ErrorFrame,
  outcome: ErrorOutcome,
): void {
  const certain = isModernRefusal(frame);
  if (!certain && !AMBIGUOUS_CODES.has(frame.code)) return;
  if (certain) session.drop();
  throw new WrongEra(
    `${name} answered ${frame.code} ${frame.message} to a legacy request`,
    certain ? undefined : outcome,
  );
}

/** A modern server's complaint of headers, version, or of a request without its envelope. */
function isModernRefusal({ code, message }: ErrorFrame): boolean {
  if (MODERN_CODES.has(code)) return true;
  return code === CODE.invalidParams && /_meta|envelope|io\.modelcontextprotocol/.test(message);
}

/** Whether a server promises to tell of anything. */
function promisesAny({ info }: BackendSession): boolean {
  const { lists, subscribe } = promisesOf(info.capabilities);
  return lists.size > 0 || subscribe;
}

function describe(session: BackendSession, sameEra: boolean): ServerDescription {
  const { info, deaf, backend } = session;
  const heard = deaf || backend.hasNoFeed ? withoutPromises(info.capabilities) : info.capabilities;
  return {
    era: 'legacy',
    capabilities: sameEra ? heard : neutralTaskCapabilities(heard),
    serverInfo: info.serverInfo,
    instructions: info.instructions,
    ttlMs: 0,
    sessions: session.id !== undefined && info.settled,
    result: info.bytes.subarray(info.result.start, info.result.end),
  };
}

function resultOutcome(
  exchange: Exchange,
  session: BackendSession,
  frame: ResultFrame,
  ttlMs: Readonly<Record<string, number>>,
): ResultOutcome {
  const { method } = exchange.request;
  const sameEra = exchange.caller.era === 'legacy';
  const edits = new Map<string, Rope | string | undefined>();
  if (!sameEra) neutralResult(method, frame.bytes, frame.result, edits);
  return {
    type: 'result',
    bytes: frame.bytes,
    node: frame.result,
    edits,
    dress: sameEra ? 'legacy' : 'none',
    serverInfo: session.info.serverInfo,
    frameId: undefined,
    freshness: CACHEABLE.has(method) ? freshnessOf(method, session, ttlMs) : undefined,
  };
}
