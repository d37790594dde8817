import type { HttpCall, StreamCall } from '../downstream/http-call.js';
import type { ReplayBudget } from '../downstream/replay-budget.js';
import type { Change } from '../exchange/changes/change.js';
import type { ClientState } from '../exchange/client-state.js';
import type { ForwardedHeaders } from '../exchange/forwarded-headers.js';
import type { Outbound } from '../exchange/outbound.js';
import type { EraName, Revision } from '../exchange/revision.js';
import type { RouteService } from '../exchange/route-service.js';
import type { TaskLimits } from '../exchange/tasks.js';
import type { Sealer } from '../exchange/utils/sealer.js';
import type { Ticker } from '../exchange/utils/ticker.js';
import type { Batch, Frame } from '../jsonrpc/index.js';
import type { Transport } from '../upstream/transport.js';

/** One era of MCP: its revisions, its side toward clients, its side toward backends, and how to probe for it. */
export interface Era {
  readonly name: EraName;
  /** Newest first. */
  readonly revisions: readonly Revision[];
  /** The transports that its revisions define. */
  readonly transports: readonly TransportName[];
  openClientSide(options: ClientSideOptions): ClientSide;
  openBackendSide(options: BackendSideOptions): Outbound;
  /** Asks a backend whether it speaks this era. */
  probe(options: ProbeOptions): Promise<ProbeResult>;
  /**
   * The first request of a client to a server.
   * @param clientInfo JSON text of the Implementation object
   * @param revision to offer; the newest if left out
   */
  firstRequest(clientInfo: string, revision?: Revision): FirstRequest;
}

export type TransportName = 'streamable-http' | 'http-sse' | 'stdio';

/** What both sides of a route are given. */
interface SideOptions {
  /** Path of the route. */
  readonly route: string;
  readonly sealer: Sealer;
  readonly ticker: Ticker;
  /** Reports an error of the gateway itself that reaches no client. */
  readonly onFault: (error: unknown) => void;
}

export interface ClientSideOptions extends SideOptions {
  readonly sessions: ClientSessionLimits;
  readonly questions: ParkedCallLimits;
  readonly tasks: TaskLimits;
  /** Whether clients may use HTTP+SSE. */
  readonly httpSse: boolean;
}

export interface ClientSessionLimits {
  /** Sessions in memory. */
  readonly max: number;
  /** A session unused for so long is dropped from memory, and its backend session ended. */
  readonly idleMs: number;
  /** Keeps events for clients whose connection breaks; undefined to keep none. */
  readonly replay: ReplayBudget | undefined;
  /** Bounds what is kept for all clients together. */
  readonly state: ClientState;
  /** Longest time of one connection of a client that can resume its stream; undefined for no limit. */
  readonly holdMs: number | undefined;
}

/** Limits of server requests that wait for a person, and of the calls that wait with them. */
export interface ParkedCallLimits {
  /** Longest time for an answer. */
  readonly timeoutMs: number;
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Of all callers without a credential together. */
  readonly maxParkedAnonymous: number;
  /** Rounds of server requests in one call. */
  readonly maxRounds: number;
}

/** The sides of an era that talk to the clients of a route. */
export interface ClientSide {
  readonly inbound: Inbound;
  /** For clients on HTTP+SSE; undefined where the era, or the route, has no place for them. */
  readonly sse: SseInbound | undefined;
}

export interface BackendSideOptions extends SideOptions {
  /** Name of the backend in messages to people. */
  readonly name: string;
  readonly transport: Transport;
  /** JSON text of the Implementation object of the gateway. */
  readonly ownInfo: string;
  /** Longest time for a handshake, or for another request of the gateway itself. */
  readonly handshakeMs: number;
  /** The newest revision to offer; undefined for the newest of the era. */
  readonly newestRevision: Revision | undefined;
  readonly sessions: BackendSessionLimits;
  readonly questions: {
    /** Whether roots are declared to servers, and whether the client is asked for them each time. */
    readonly roots: 'off' | 'cached' | 'ask';
    /** Rounds of server requests in one call. */
    readonly maxRounds: number;
  };
  readonly tasks: TaskLimits & {
    /** How a tool that may run as a task is called for a client that takes tasks. */
    readonly optional: 'call' | 'task';
  };
  /** How long results are fresh, by method; where it is not set, the backend's own hints count. */
  readonly ttlMs: ReadonlyMap<string, number>;
  /** Observes every change that the backend notifies. */
  readonly onChange: (change: Change) => void;
}

export interface BackendSessionLimits {
  /** `call` opens a session for each call; `principal` shares sessions among the calls of one principal. */
  readonly isolation: 'principal' | 'call';
  readonly max: number;
  readonly idleMs: number;
  /** Responses that mean a lost session, beside the known ones. */
  readonly lost: readonly ConfiguredLoss[];
}

/** A response that means a lost session. */
export interface ConfiguredLoss {
  readonly status: number;
  /** Part of the message, in any case; undefined for any message. */
  readonly message?: string;
}

export interface ProbeOptions {
  /** Name of the backend in messages to people. */
  readonly name: string;
  readonly transport: Transport;
  readonly ticker: Ticker;
  /** JSON text of the Implementation object of the gateway. */
  readonly ownInfo: string;
  readonly timeoutMs: number;
  readonly forwarded: ForwardedHeaders;
}

/** Whether a backend speaks an era. `reason` is a clause for messages to people, such as `answered with HTTP 404`. */
export type ProbeFinding =
  | { readonly kind: 'spoken'; readonly reason: string }
  /** `absent` if a backend that is not there answers like this too. */
  | { readonly kind: 'not-spoken'; readonly reason: string; readonly absent?: boolean }
  /** The backend and the gateway speak it, in no common version. */
  | { readonly kind: 'no-common-version'; readonly reason: string }
  /** Proves nothing; `slow` if that took all of the time that a probe has. */
  | { readonly kind: 'inconclusive'; readonly reason: string; readonly slow: boolean }
  | { readonly kind: 'unreachable'; readonly reason: string };

export interface ProbeResult {
  readonly finding: ProbeFinding;
  /** The server as it described itself; undefined if it did not. */
  readonly server: ProbedServer | undefined;
}

/** What a server says of itself. Its texts are not to be trusted. */
export interface ProbedServer {
  readonly revisions: readonly string[];
  readonly capabilities: unknown;
  readonly serverInfo: unknown;
  /** The session that the probe opened, and ended; undefined in an era without sessions. */
  readonly session: { readonly id: string | undefined } | undefined;
}

/** The first request of a client to a server. */
export interface FirstRequest {
  readonly method: string;
  /** JSON text. */
  readonly params: string;
}

/** Serves the clients of an era on one route. */
export interface Inbound {
  /** Whether a POST belongs to this era. */
  claimsPost(call: HttpCall, body: Frame | Batch): boolean;
  post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void>;
  /** Whether a GET or DELETE belongs to this era. */
  claimsOther(call: HttpCall): boolean;
  get(route: RouteService, call: StreamCall): void | Promise<void>;
  delete(route: RouteService, call: HttpCall): Promise<void>;
  /** Ends what outlasts requests, such as tasks, while the backend sessions are still there; never rejects. */
  drain(): Promise<void>;
  /** Ends sessions and streams; never rejects. */
  close(): Promise<void>;
}

/** Serves clients on HTTP+SSE, the transport of 2024-11-05, on one route. */
export interface SseInbound {
  /**
   * Opens the event stream of a client.
   * @param messagesPath path and query to which the client posts its messages, on the origin of the stream
   */
  open(call: StreamCall, messagesPath: string): void;
  /** @param sessionId of the stream, from the URL that the client posts to */
  post(
    route: RouteService,
    call: HttpCall,
    sessionId: string | undefined,
    body: Frame | Batch,
  ): Promise<void>;
  /** Ends all streams. */
  close(): Promise<void>;
}
