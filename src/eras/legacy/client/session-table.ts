import type { Principal } from '../../../exchange/credentials.js';
import type { LegacyClientSession } from './session.js';

type Test = (session: LegacyClientSession) => boolean;

/** No request is in flight, and no stream is open. */
const isIdle: Test = (session) => !session.busy;
/** No request is in flight; a stream may be open. */
const isQuiet: Test = (session) => !session.calling;

/** The sessions in memory, and which of them is evicted next. */
export class SessionTable {
  readonly #sessions = new Map<string, LegacyClientSession>();
  /** By principal, the session that is unused for longest first. */
  readonly #byPrincipal = new Map<Principal, Set<LegacyClientSession>>();

  get size(): number {
    return this.#sessions.size;
  }

  get(token: string): LegacyClientSession | undefined {
    return this.#sessions.get(token);
  }

  /** All sessions, as they are now. */
  all(): readonly LegacyClientSession[] {
    return [...this.#sessions.values()];
  }

  add(session: LegacyClientSession): void {
    const { principal } = session.claims;
    this.#sessions.set(session.token, session);
    const own = this.#byPrincipal.get(principal);
    if (own === undefined) this.#byPrincipal.set(principal, new Set([session]));
    else own.add(session);
  }

  /** Notes that a session is in use. */
  touch(session: LegacyClientSession): void {
    session.touch();
    const own = this.#byPrincipal.get(session.claims.principal);
    if (own === undefined || own.size === 1) return;
    own.delete(session);
    own.add(session);
  }

  /** @returns false if the session is not in the table */
  remove(session: LegacyClientSession): boolean {
    const { principal } = session.claims;
    const own = this.#byPrincipal.get(principal);
    if (own?.delete(session) === true && own.size === 0) this.#byPrincipal.delete(principal);
    return this.#sessions.delete(session.token);
  }

  /**
   * The session to evict for a new one of a principal; undefined if none can be. Principals with the most sessions are first,
   * so that nobody can evict the sessions of others by opening many. Without an idle session, one with an open stream is
   * evicted, but only for a principal that has fewer sessions.
   */
  victimFor(principal: Principal): LegacyClientSession | undefined {
    const own: ReadonlySet<LegacyClientSession> = this.#byPrincipal.get(principal) ?? new Set();
    let most = own;
    for (const others of this.#byPrincipal.values()) if (others.size > most.size) most = others;
    if (most === own) return first(own, isIdle);
    const idle = most.size > 1 ? first(most, isIdle) : undefined;
    return idle ?? this.longestIdle() ?? (most.size > own.size + 1 ? first(most, isQuiet) : undefined);
  }

  /** The idle session that is unused for longest: of a principal, or of all. */
  longestIdle(principal?: Principal): LegacyClientSession | undefined {
    if (principal !== undefined) return first(this.#byPrincipal.get(principal) ?? [], isIdle);
    let oldest: LegacyClientSession | undefined;
    for (const session of this.#sessions.values()) {
      if (isIdle(session) && session.lastUsedAt < (oldest?.lastUsedAt ?? Infinity)) oldest = session;
    }
    return oldest;
  }
}

function first(sessions: Iterable<LegacyClientSession>, fits: Test): LegacyClientSession | undefined {
  for (const session of sessions) if (fits(session)) return session;
  return undefined;
}
