import type { JsonNode, RequestId } from '../jsonrpc/index.js';

/** The two wire languages of MCP: handshake and session, or stateless with per-request `_meta`. */
export type EraName = 'legacy' | 'modern';

/** A dated protocol revision, such as `2025-11-25`. */
export type Revision = string;

/** Who a request comes from, as far as the gateway can tell: a hash of the forwarded credential, or `anonymous`. */
export type Principal = string & { readonly __principal: unique symbol };

/** The levels of `notifications/message`, least severe first (RFC 5424, as MCP lists them). */
export const LOG_LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return typeof value === 'string' && (LOG_LEVELS as readonly string[]).includes(value);
}

/** Whether a message of `level` is wanted by someone who asked for `threshold` and above. */
export function levelReaches(level: LogLevel, threshold: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold);
}

/** What a client said that it can do, in the neutral form: parsed once, kept beside the text it came in. */
export interface ClientCapabilities {
  /** JSON text as the client wrote it. */
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Equal for declarations that mean the same, whatever their key order. */
  readonly key: string;
}

/** HTTP headers of the client that are forwarded to the backend, and replace fixed ones of the route. */
export const FORWARDED_HEADERS = ['authorization', 'traceparent', 'tracestate'] as const;

export type ForwardedHeaders = { readonly [Name in (typeof FORWARDED_HEADERS)[number]]?: string };

/** Of a client that sent none of them. */
export const NO_FORWARDED: ForwardedHeaders = {};

/** Who sends a request: everything that the eras say in different places. */
export interface Caller {
  readonly era: EraName;
  readonly revision: Revision;
  readonly principal: Principal;
  /** JSON text of the client's Implementation object. */
  readonly clientInfo: string | undefined;
  /** As the client declared them, in the words of its era. */
  readonly capabilities: ClientCapabilities;
  /** The same, as far as the other era can be told of them. */
  readonly neutralCapabilities: ClientCapabilities;
  readonly logLevel: LogLevel | undefined;
  readonly forwarded: ForwardedHeaders;
  /** Present where the client holds a session with the gateway. */
  readonly session: ClientSession | undefined;
}

/** A message of a server, whole and byte for byte, that is not an answer. */
export interface ServerMessage {
  readonly method: string;
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

/** A server's request to the client, under the server's own id. */
export interface ServerRequest extends ServerMessage {
  readonly id: RequestId;
  /** In the neutral form, and outside any request: the name under which the client knows the task that wants to know. */
  readonly task?: string;
}

/** The client's answer to a {@link ServerRequest}: the JSON text of `result`, or of `error`. */
export type Answer = ({ readonly result: Buffer } | { readonly error: Buffer }) & {
  /** What it came with, where that may be other credentials than those of the request. */
  readonly forwarded?: ForwardedHeaders;
};

/** The way from a server to the client: of one exchange, or of a client session outside any exchange. */
export interface Channel {
  /**
   * Hands a notification to the client, or to nowhere if it cannot have it.
   * @returns false when the client reads slower than the server writes; see {@link Channel.onDrain}.
   */
  notify(message: ServerMessage): boolean;
  /** Runs `resume` once the client has caught up. */
  onDrain(resume: () => void): void;
  /** False while the client has lost the connection by which it would hear of a question. */
  readonly reachable?: boolean;
  /** Lets the client's connection go, where it knows how to come back for the rest of the stream. */
  detach?(): void;
  /**
   * Puts a question to the client and waits for the answer.
   * @throws ServerRequestRefused when the client cannot be asked this.
   */
  ask(question: ServerRequest): Promise<Answer>;
}

/** A session with a backend that outlives the process that opened it. */
export interface SealedBackendSession {
  readonly id: string;
  readonly revision: Revision;
  /** Value of the `Cookie` header by which a balancer finds the session. */
  readonly cookies: string | undefined;
}

/**
 * A client's session with the gateway, as an outbound side sees it: the way for messages that belong to no request,
 * and a place to keep what the outbound side holds for this client alone.
 */
export interface ClientSession {
  readonly channel: Channel;
  readonly binding: SessionBinding | undefined;
  /** The backend's session from the sealed token, for the outbound side that serves the session first. */
  readonly backendSession: SealedBackendSession | undefined;
  /** Whether the client holds a stream open for messages outside any request. */
  readonly listening: boolean;
  /** Replaces the binding; the one before is to be ended by the caller. */
  bind(binding: SessionBinding | undefined): void;
}

/** What an outbound side keeps for one client session. */
export interface SessionBinding {
  readonly backendSession: SealedBackendSession | undefined;
  /** The client opened or closed its stream for messages outside any request; see {@link ClientSession.listening}. */
  onListening(): void;
  /** Passes on a notification of the client. */
  notify(method: string, bytes: Buffer): void;
  /** Ends the backend's side of it; never throws. */
  end(): Promise<void>;
}
