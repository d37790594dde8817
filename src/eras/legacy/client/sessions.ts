import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import type { SealedBackendSession } from '../../../exchange/client-session.js';
import type { ClientState, KeptState, StateHolder } from '../../../exchange/client-state.js';
import type { Principal } from '../../../exchange/credentials.js';
import { overloaded } from '../../../exchange/errors.js';
import { sha256 } from '../../../exchange/utils/hash.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';
import { type ClientSessionOptions, LegacyClientSession, type SessionClaims } from './session.js';

export interface ClientSessionsOptions extends ClientSessionOptions {
  /** Sessions that are kept in memory; idle ones make way. Their clients may come back all the same. */
  readonly max: number;
  /** A session on which nothing happened for so long is dropped from memory, and its backend session ended. */
  readonly idleMs: number;
  /** Bounds what is kept for all clients together; undefined for no bound. */
  readonly state?: ClientState | undefined;
}

const PURPOSE = 'session';
/** How long a sealed id is good for after its handshake. */
const LIFETIME_MS = 7 * 24 * 3_600_000;
/** Ended sessions are remembered, so that their ids are not taken for sessions of another process. */
const REMEMBERED_ENDS = 100_000;
const SWEEPS_PER_IDLE_TIME = 4;
/** A session id is a header; what a client says of itself beyond this (icons, say) is left out of it. */
const MAX_INFO_BYTES = 1_024;
const MAX_CAPABILITIES_BYTES = 3_000;
const MAX_COOKIES_BYTES = 512;
/** Proxies take no longer line, and this gateway opens no longer token; some servers have ids of several thousand characters. */
const LONGEST_ID = 8_000;

type Sealed = [
  route: string,
  revision: string,
  principal: string,
  issuedAt: number,
  clientInfo: string | null,
  capabilities: string,
  backendId: string | null,
  backendRevision: string | null,
  owner: string | null,
  cookies: string | null,
];

/**
 * The sessions of legacy clients with one route. Their ids are sealed tokens, so that any process with the key serves
 * any session; what this process knows beyond the token is kept here and can be made anew.
 */
export class ClientSessions implements StateHolder {
  readonly #route: string;
  readonly #sealer: Sealer;
  readonly #options: ClientSessionsOptions;
  readonly #live = new Map<string, LegacyClientSession>();
  /** Of each principal, the session unused for longest first. */
  readonly #byPrincipal = new Map<Principal, Set<LegacyClientSession>>();
  /** Sessions whose end the backend is being told. */
  readonly #ending = new Set<Promise<void>>();
  /** Digests of the ids of ended sessions: an id may have thousands of characters. */
  readonly #ended = new LRUCache<string, true>({ max: REMEMBERED_ENDS });
  #sweeper: NodeJS.Timeout | undefined;

  constructor(route: string, sealer: Sealer, options: ClientSessionsOptions) {
    this.#route = route;
    this.#sealer = sealer;
    this.#options = options;
    options.state?.join(this);
  }

  /** Sessions in memory. */
  get size(): number {
    return this.#live.size;
  }

  /** A session that is not kept yet: its handshake is to be done. */
  create(facts: SessionClaims): LegacyClientSession {
    return new LegacyClientSession(facts, this.#options);
  }

  /**
   * Seals a session whose handshake is done, and keeps it.
   * @throws ExchangeError when there is no room
   */
  add(session: LegacyClientSession): string {
    const { facts } = session;
    const backend = session.binding?.backendSession;
    const clientInfo = upTo(MAX_INFO_BYTES, facts.clientInfo);
    const capabilities = upTo(MAX_CAPABILITIES_BYTES, facts.capabilities.text) ?? '{}';
    let token = this.#seal(facts, clientInfo, capabilities, backend);
    // Another process can do without knowing who the client is rather than without the session.
    if (token.length > LONGEST_ID) token = this.#seal(facts, null, '{}', backend);
    if (token.length > LONGEST_ID) token = this.#seal(facts, clientInfo, capabilities, undefined);
    session.named(token);
    this.#keep(session);
    return token;
  }

  #seal(
    { revision, principal, owner }: SessionClaims,
    clientInfo: string | null,
    capabilities: string,
    backend: SealedBackendSession | undefined,
  ): string {
    const sealed: Sealed = [
      this.#route,
      revision,
      principal,
      Date.now(),
      clientInfo,
      capabilities,
      backend?.id ?? null,
      backend?.revision ?? null,
      owner ?? null,
      upTo(MAX_COOKIES_BYTES, backend?.cookies),
    ];
    return this.#sealer.seal(PURPOSE, JSON.stringify(sealed));
  }

  /**
   * The session of a token: of this route and this principal, alive. Anything else is no session at all.
   * @throws ExchangeError when it is not in memory, and there is no room for it
   */
  get(token: string, principal: Principal): LegacyClientSession | undefined {
    const known = this.#live.get(token);
    if (known !== undefined) {
      if (!known.isOf(principal)) return undefined;
      this.#touch(known);
      return known;
    }
    const session = this.#restore(token);
    if (session === undefined || !session.isOf(principal)) return undefined;
    this.#keep(session);
    return session;
  }

  /** The session of a token, whoever asks: to find out whether the asker may have it, and for nothing else. */
  peek(token: string): LegacyClientSession | undefined {
    return this.#live.get(token) ?? this.#restore(token);
  }

  /**
   * Lets a principal have a session from now on. It must have proved to be the owner.
   * @throws ExchangeError as {@link ClientSessions.get}
   */
  adopt(peeked: LegacyClientSession, principal: Principal): LegacyClientSession {
    const session = this.#live.get(peeked.token) ?? peeked;
    session.adopt(principal);
    this.#use(session);
    return session;
  }

  /**
   * Lets a principal, which the backend took after a challenge, have a session in place of the one before.
   * @throws ExchangeError as {@link ClientSessions.get}
   */
  handOver(
    peeked: LegacyClientSession,
    principal: Principal,
    owner: string | undefined,
  ): LegacyClientSession {
    const session = this.#live.get(peeked.token) ?? peeked;
    session.handOver(principal, owner);
    this.#use(session);
    return session;
  }

  #use(session: LegacyClientSession): void {
    if (this.#live.has(session.token)) this.#touch(session);
    else this.#keep(session);
  }

  /** Ends a session for good; resolves when the backend has been told. */
  async end(session: LegacyClientSession): Promise<void> {
    this.#ended.set(sha256(session.token), true);
    await this.#drop(session, 'the session was ended');
  }

  /** Ends the streams and the backend sessions of all; the clients' tokens stay good where the key does. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#options.state?.leave(this);
    for (const session of [...this.#live.values()]) void this.#drop(session, 'the gateway is shutting down');
    await Promise.all(this.#ending);
  }

  #restore(token: string): LegacyClientSession | undefined {
    const facts = this.#ended.has(sha256(token)) ? undefined : this.#open(token);
    if (facts === undefined) return undefined;
    const session = this.create(facts);
    session.named(token);
    return session;
  }

  giveWay(principal: Principal | undefined): boolean {
    const victim =
      principal === undefined
        ? oldestOf(this.#live.values(), isIdle)
        : first(this.#byPrincipal.get(principal) ?? [], isIdle);
    if (victim === undefined) return false;
    void this.#drop(victim, 'the session made room for others');
    return true;
  }

  #touch(session: LegacyClientSession): void {
    session.touch();
    const own = this.#byPrincipal.get(session.facts.principal);
    if (own === undefined || own.size === 1) return;
    own.delete(session);
    own.add(session);
  }

  #keep(session: LegacyClientSession): void {
    const { principal } = session.facts;
    if (this.#live.size >= this.#options.max) this.#makeRoom(principal);
    this.#options.state?.take(keptFor(session));
    this.#live.set(session.token, session);
    const own = this.#byPrincipal.get(principal);
    if (own === undefined) this.#byPrincipal.set(principal, new Set([session]));
    else own.add(session);
    const everyMs = Math.max(this.#options.idleMs / SWEEPS_PER_IDLE_TIME, 50);
    this.#sweeper ??= setInterval(() => this.#sweep(), everyMs).unref();
  }

  #remove(session: LegacyClientSession): void {
    if (this.#live.delete(session.token)) this.#options.state?.release(keptFor(session));
    const { principal } = session.facts;
    const own = this.#byPrincipal.get(principal);
    if (own?.delete(session) === true && own.size === 0) this.#byPrincipal.delete(principal);
  }

  /** Lets go of a session; resolves when the backend has been told. */
  #drop(session: LegacyClientSession, reason: string): Promise<void> {
    this.#remove(session);
    session.close(reason);
    if (session.binding === undefined) return Promise.resolve();
    const ended = session.binding.end().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
    return ended;
  }

  /**
   * Whoever has most sessions gives way first, so that nobody can push out the sessions of others by opening many;
   * where no session is idle, one that only holds a stream, and only to someone who has fewer.
   * @throws ExchangeError when all are in use
   */
  #makeRoom(newcomer: Principal): void {
    const victim = this.#victimFor(this.#byPrincipal.get(newcomer) ?? new Set());
    if (victim === undefined)
      throw overloaded(`limit of ${this.#options.max} client sessions reached, all in use`);
    void this.#drop(victim, 'the session made way for others');
  }

  /** @param own the sessions of the newcomer */
  #victimFor(own: Set<LegacyClientSession>): LegacyClientSession | undefined {
    let most = own;
    for (const others of this.#byPrincipal.values()) if (others.size > most.size) most = others;
    if (most === own) return first(own, isIdle);
    const idle = most.size > 1 ? first(most, isIdle) : undefined;
    return (
      idle ??
      oldestOf(this.#live.values(), isIdle) ??
      (most.size > own.size + 1 ? first(most, isQuiet) : undefined)
    );
  }

  #open(token: string): SessionClaims | undefined {
    const content = this.#sealer.open(PURPOSE, token);
    if (content === undefined) return undefined;
    const sealed = JSON.parse(content) as Sealed;
    const [route, revision, principal, issuedAt, clientInfo, capabilities] = sealed;
    const [backendId, backendRevision, owner, cookies] = sealed.slice(6) as (string | null | undefined)[];
    if (route !== this.#route || Date.now() - issuedAt > LIFETIME_MS) return undefined;
    const declared = readCapabilities(capabilities);
    return {
      route,
      revision,
      principal: principal as Principal,
      owner: owner ?? undefined,
      clientInfo: clientInfo ?? undefined,
      capabilities: declared,
      neutralCapabilities: neutralClientCapabilities(declared, revision),
      backendSession:
        typeof backendId === 'string'
          ? { id: backendId, revision: backendRevision ?? revision, cookies: cookies ?? undefined }
          : undefined,
    };
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const session of this.#live.values()) {
      if (session.lastUsedAt >= before || session.busy) continue;
      void this.#drop(session, 'the session was idle');
    }
  }
}

/** Bytes of a session beside the texts of its client. */
const SESSION_BYTES = 512;

function keptFor({ token, facts }: LegacyClientSession): KeptState {
  return {
    principal: facts.principal,
    bytes: SESSION_BYTES + token.length + (facts.clientInfo?.length ?? 0),
    declarations: [facts.capabilities, facts.neutralCapabilities],
  };
}

/** The text, if it is there and not longer than that. */
function upTo(bytes: number, text: string | undefined): string | null {
  return text !== undefined && Buffer.byteLength(text) <= bytes ? text : null;
}

type Test = (session: LegacyClientSession) => boolean;

const isIdle: Test = (session) => !session.busy;
/** It may hold a stream, but nothing is waited for. */
const isQuiet: Test = (session) => !session.calling;

function first(sessions: Iterable<LegacyClientSession>, fits: Test): LegacyClientSession | undefined {
  for (const session of sessions) if (fits(session)) return session;
  return undefined;
}

function oldestOf(sessions: Iterable<LegacyClientSession>, fits: Test): LegacyClientSession | undefined {
  let oldest: LegacyClientSession | undefined;
  for (const session of sessions) {
    if (fits(session) && session.lastUsedAt < (oldest?.lastUsedAt ?? Infinity)) oldest = session;
  }
  return oldest;
}
