import { LRUCache } from 'lru-cache';
import type { ClientState, KeptState, StateHolder } from '../../../exchange/client-state.js';
import type { Principal } from '../../../exchange/credentials.js';
import { overloaded } from '../../../exchange/errors.js';
import { sha256 } from '../../../exchange/utils/hash.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import { type ClientSessionOptions, LegacyClientSession } from './session.js';
import { ClaimsSealer, type SessionClaims } from './session-claims.js';
import { SessionTable } from './session-table.js';

export interface ClientSessionsOptions extends ClientSessionOptions {
  /** Limit of the sessions in memory. An evicted session is restored from its id when its client comes back. */
  readonly max: number;
  /** A session unused for so long is removed from memory, and its backend session ended. */
  readonly idleMs: number;
  /** Bounds what is kept for all clients together; undefined for no bound. */
  readonly state?: ClientState | undefined;
}

/** Limit of the ended sessions whose ids are remembered, so that they are not restored. */
const MAX_ENDED = 100_000;
const SWEEPS_PER_IDLE_TIME = 4;
const SHORTEST_SWEEP_MS = 50;

/**
 * The sessions of legacy clients with one route. Their ids are sealed claims, so that any process with the key serves any
 * session; what this process knows beyond the claims can be made again.
 */
export class ClientSessions implements StateHolder {
  readonly #claims: ClaimsSealer;
  readonly #options: ClientSessionsOptions;
  readonly #table = new SessionTable();
  /** Sessions whose backend sessions are being ended. */
  readonly #ending = new Set<Promise<void>>();
  /** Digests of the ids of ended sessions: an id may have thousands of characters. */
  readonly #ended = new LRUCache<string, true>({ max: MAX_ENDED });
  #sweeper: NodeJS.Timeout | undefined;

  constructor(route: string, sealer: Sealer, options: ClientSessionsOptions) {
    this.#claims = new ClaimsSealer(route, sealer);
    this.#options = options;
    options.state?.join(this);
  }

  /** Sessions in memory. */
  get size(): number {
    return this.#table.size;
  }

  /** Creates a session, which {@link ClientSessions.add} keeps after the handshake. */
  create(claims: SessionClaims): LegacyClientSession {
    return new LegacyClientSession(claims, this.#options);
  }

  /**
   * Keeps a session after its handshake.
   * @returns its sealed id
   * @throws ExchangeError if there is no room
   */
  add(session: LegacyClientSession): string {
    const token = this.#claims.seal(session.claims, session.binding?.backendSession);
    session.setToken(token);
    this.#keep(session);
    return token;
  }

  /**
   * The session of an id, if it is of this route and this principal, and was not ended.
   * @throws ExchangeError if it is not in memory, and there is no room for it
   */
  get(token: string, principal: Principal): LegacyClientSession | undefined {
    const known = this.#table.get(token);
    if (known !== undefined) {
      if (!known.owner.includes(principal)) return undefined;
      this.#table.touch(known);
      return known;
    }
    const session = this.#restore(token);
    if (session === undefined || !session.owner.includes(principal)) return undefined;
    this.#keep(session);
    return session;
  }

  /** The session of an id, of any principal: only to find out whether the caller may use it. */
  peek(token: string): LegacyClientSession | undefined {
    return this.#table.get(token) ?? this.#restore(token);
  }

  /**
   * Lets a principal use a session as well. The principal must have proved to be its owner.
   * @throws ExchangeError as {@link ClientSessions.get}
   */
  share(peeked: LegacyClientSession, principal: Principal): LegacyClientSession {
    const session = this.#table.get(peeked.token) ?? peeked;
    session.owner.share(principal);
    this.#use(session);
    return session;
  }

  /**
   * Gives a session to another principal, whose credential the backend accepted after a challenge.
   * @throws ExchangeError as {@link ClientSessions.get}
   */
  transfer(
    peeked: LegacyClientSession,
    principal: Principal,
    owner: string | undefined,
  ): LegacyClientSession {
    const session = this.#table.get(peeked.token) ?? peeked;
    session.owner.transfer(principal, owner);
    this.#use(session);
    return session;
  }

  /** Ends a session for good; resolves when its backend session is ended. */
  async end(session: LegacyClientSession): Promise<void> {
    this.#ended.set(sha256(session.token), true);
    await this.#drop(session, 'the session was ended');
  }

  /** Ends all streams and backend sessions; the ids of the clients stay valid. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#options.state?.leave(this);
    for (const session of this.#table.all()) void this.#drop(session, 'the gateway is shutting down');
    await Promise.all(this.#ending);
  }

  giveWay(principal: Principal | undefined): boolean {
    const victim = this.#table.longestIdle(principal);
    if (victim === undefined) return false;
    void this.#drop(victim, 'the session made room for others');
    return true;
  }

  #restore(token: string): LegacyClientSession | undefined {
    const claims = this.#ended.has(sha256(token)) ? undefined : this.#claims.open(token);
    if (claims === undefined) return undefined;
    const session = this.create(claims);
    session.setToken(token);
    return session;
  }

  #use(session: LegacyClientSession): void {
    if (this.#table.get(session.token) !== undefined) this.#table.touch(session);
    else this.#keep(session);
  }

  /** @throws ExchangeError if there is no room */
  #keep(session: LegacyClientSession): void {
    if (this.#table.size >= this.#options.max) this.#makeRoom(session.claims.principal);
    this.#options.state?.take(keptFor(session));
    this.#table.add(session);
    const everyMs = Math.max(this.#options.idleMs / SWEEPS_PER_IDLE_TIME, SHORTEST_SWEEP_MS);
    this.#sweeper ??= setInterval(() => this.#sweep(), everyMs).unref();
  }

  #makeRoom(principal: Principal): void {
    const victim = this.#table.victimFor(principal);
    if (victim === undefined)
      throw overloaded(`limit of ${this.#options.max} client sessions reached, all in use`);
    void this.#drop(victim, 'the session made way for others');
  }

  /** Removes a session from memory; resolves when its backend session is ended. */
  #drop(session: LegacyClientSession, reason: string): Promise<void> {
    if (this.#table.remove(session)) this.#options.state?.release(keptFor(session));
    session.close(reason);
    if (session.binding === undefined) return Promise.resolve();
    const ended = session.binding.end().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
    return ended;
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const session of this.#table.all()) {
      if (session.lastUsedAt >= before || session.busy) continue;
      void this.#drop(session, 'the session was idle');
    }
  }
}

/** Bytes of a session without the texts of its client. */
const SESSION_BYTES = 512;

function keptFor({ token, claims }: LegacyClientSession): KeptState {
  return {
    principal: claims.principal,
    bytes: SESSION_BYTES + token.length + (claims.clientInfo?.length ?? 0),
    declarations: [claims.capabilities, claims.neutralCapabilities],
  };
}
