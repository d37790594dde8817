import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../exchange/digest.js';
import type { Sealer } from '../../exchange/seal.js';
import type { Principal } from '../../exchange/types.js';
import { neutralClientCapabilities } from './client-capabilities.js';
import { LegacyClientSession, type SessionFacts } from './client-session.js';

export interface ClientSessionsOptions {
  /** Sessions that are kept in memory; the one unused for longest makes way. Its client may come back all the same. */
  readonly max: number;
  /** A session on which nothing happened for so long is dropped from memory, and its backend session ended. */
  readonly idleMs: number;
}

const PURPOSE = 'session';
/** How long a sealed id is good for after its handshake. */
const LIFETIME_MS = 7 * 24 * 3_600_000;
/** Ended sessions are remembered, so that their ids are not taken for sessions of another process. */
const REMEMBERED_ENDS = 100_000;
const SWEEPS_PER_IDLE_TIME = 4;
/** A session id is a header; what a client says of itself beyond this (icons, say) is left out of it. */
const MAX_INFO_CHARS = 1_024;
const MAX_CAPABILITIES_CHARS = 3_000;

type Sealed = [
  route: string,
  revision: string,
  principal: string,
  issuedAt: number,
  clientInfo: string | null,
  capabilities: string,
  backendId: string | null,
  backendRevision: string | null,
];

/**
 * The sessions of legacy clients with one route. Their ids are sealed tokens, so that any process with the key serves
 * any session; what this process knows beyond the token is kept here and can be made anew.
 */
export class ClientSessions {
  readonly #route: string;
  readonly #sealer: Sealer;
  readonly #options: ClientSessionsOptions;
  readonly #live: LRUCache<string, LegacyClientSession>;
  readonly #ended = new LRUCache<string, true>({ max: REMEMBERED_ENDS });
  #sweeper: NodeJS.Timeout | undefined;

  constructor(route: string, sealer: Sealer, options: ClientSessionsOptions) {
    this.#route = route;
    this.#sealer = sealer;
    this.#options = options;
    this.#live = new LRUCache({
      max: options.max,
      dispose: (session, _token, reason) => {
        if (reason === 'evict') drop(session, 'the session made way for others');
      },
    });
  }

  /** Sessions in memory. */
  get size(): number {
    return this.#live.size;
  }

  /** Seals a session whose handshake is done, and keeps it. */
  add(session: LegacyClientSession): string {
    const { facts } = session;
    const backend = session.affinity?.backendSession;
    const { clientInfo } = facts;
    const sealed: Sealed = [
      this.#route,
      facts.revision,
      facts.principal,
      Date.now(),
      clientInfo !== undefined && clientInfo.length <= MAX_INFO_CHARS ? clientInfo : null,
      facts.capabilities.text.length <= MAX_CAPABILITIES_CHARS ? facts.capabilities.text : '{}',
      backend?.id ?? null,
      backend?.revision ?? null,
    ];
    session.token = this.#sealer.seal(PURPOSE, JSON.stringify(sealed));
    this.#keep(session);
    return session.token;
  }

  /** The session of a token: of this route and this principal, alive. Anything else is no session at all. */
  get(token: string, principal: Principal): LegacyClientSession | undefined {
    const known = this.#live.get(token);
    if (known !== undefined) {
      if (known.facts.principal !== principal) return undefined;
      known.lastUsedAt = performance.now();
      return known;
    }
    if (this.#ended.has(token)) return undefined;
    const facts = this.#open(token);
    if (facts === undefined || facts.principal !== principal) return undefined;
    const session = new LegacyClientSession(facts);
    session.token = token;
    this.#keep(session);
    return session;
  }

  /** Ends a session for good; resolves when the backend has been told. */
  async end(session: LegacyClientSession): Promise<void> {
    this.#live.delete(session.token);
    this.#ended.set(session.token, true);
    session.close('the session was ended');
    await session.affinity?.end();
  }

  /** Ends the streams and the backend sessions of all; the clients' tokens stay good where the key does. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    const sessions = [...this.#live.values()];
    this.#live.clear();
    await Promise.all(
      sessions.map((session) => {
        session.close('the gateway is shutting down');
        return session.affinity?.end();
      }),
    );
  }

  #keep(session: LegacyClientSession): void {
    this.#live.set(session.token, session);
    const everyMs = Math.max(this.#options.idleMs / SWEEPS_PER_IDLE_TIME, 50);
    this.#sweeper ??= setInterval(() => this.#sweep(), everyMs).unref();
  }

  #open(token: string): SessionFacts | undefined {
    const content = this.#sealer.open(PURPOSE, token);
    if (content === undefined) return undefined;
    const [route, revision, principal, issuedAt, clientInfo, capabilities, backendId, backendRevision] =
      JSON.parse(content) as Sealed;
    if (route !== this.#route || Date.now() - issuedAt > LIFETIME_MS) return undefined;
    const declared = readCapabilities(capabilities);
    return {
      route,
      revision,
      principal: principal as Principal,
      clientInfo: clientInfo ?? undefined,
      capabilities: declared,
      neutralCapabilities: neutralClientCapabilities(declared, revision),
      backendSession:
        backendId === null ? undefined : { id: backendId, revision: backendRevision ?? revision },
    };
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    // From the one unused for longest on; busy sessions may stand among them.
    for (const session of [...this.#live.rvalues()] as LegacyClientSession[]) {
      if (session.lastUsedAt >= before) break;
      if (session.busy) continue;
      this.#live.delete(session.token);
      drop(session, 'the session was idle');
    }
  }
}

function drop(session: LegacyClientSession, reason: string): void {
  session.close(reason);
  void session.affinity?.end();
}
