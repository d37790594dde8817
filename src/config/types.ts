/**
 * The configuration that the gateway runs with: defaults filled in, durations in milliseconds, sizes in bytes, deeply
 * frozen. `config/README.md` documents the keys of the file.
 */

/** The revisions that `era` can name. */
export const CONFIG_REVISIONS = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
] as const;

export type ConfigRevision = (typeof CONFIG_REVISIONS)[number];

/** The era of a backend: probed (`auto`), or fixed to an era or to one revision of it. */
export type EraSetting = 'auto' | 'legacy' | 'modern' | ConfigRevision;

/** The era to use with a backend that speaks both; `auto` takes the one that needs least translation. */
export type LegSetting = 'auto' | 'legacy' | 'modern';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface Config {
  readonly listen: ListenConfig;
  /** URL that clients use, without a trailing slash. */
  readonly publicUrl?: string;
  /** The first encrypts, all decrypt. Empty: a random key for the life of the process. */
  readonly sealKeys: readonly string[];
  /** Pause between comments on a quiet event stream. */
  readonly keepAliveMs: number;
  readonly shutdown: ShutdownConfig;
  readonly log: { readonly level: LogLevel };
  readonly limits: LimitsConfig;
  /** At least one; each has its own path. */
  readonly routes: readonly RouteConfig[];
  /** Warnings about what is valid but probably not meant; one line each, with file, line and column. */
  readonly warnings: readonly string[];
}

export interface ListenConfig {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Lower-case `host` or `host:port`. */
  readonly allowedHosts: readonly string[];
  /** Serialized origins (`https://app.example.com`, lower case, no default port) or `null`. */
  readonly allowedOrigins: readonly string[];
  /** Addresses and ranges (`10.0.0.0/8`) whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  /** How long an idle connection of a client is kept. */
  readonly keepAliveTimeoutMs: number;
}

export interface ShutdownConfig {
  /** Between a readiness that fails and the end of the port; 0: none. */
  readonly delayMs: number;
  /** Longest time for requests in flight to finish. */
  readonly graceMs: number;
}

export interface LimitsConfig {
  readonly bodyBytes: number;
  readonly resultBytes: number;
  /** Rounds of server requests in one call. */
  readonly rounds: number;
  readonly listeners: number;
  readonly sessions: number;
  readonly exchanges: number;
  /** Running servers on stdio, of all routes together. */
  readonly processes: number;
  /** For what clients declare of themselves and is kept between their requests, of all routes together. */
  readonly clientStateBytes: number;
  /** For cached results, of all routes together. */
  readonly cacheBytes: number;
  /** For events that legacy clients missed while disconnected, of all routes together; 0 for none. */
  readonly replayBytes: number;
}

export interface RouteConfig {
  /** Begins with a slash. */
  readonly path: string;
  /** Whether clients on HTTP+SSE are accepted, at `<path>/sse` and `<path>/messages`. */
  readonly legacySse: boolean;
  readonly backend: BackendConfig;
  readonly sessions: RouteSessionsConfig;
  readonly questions: QuestionsConfig;
  readonly tasks: TasksConfig;
  readonly cache: CacheConfig;
  readonly timeouts: TimeoutsConfig;
}

/** A server on stdio, which the gateway starts. */
export interface CommandConfig {
  /** A program, found by PATH unless it contains a slash; no shell is involved. */
  readonly command: string;
  readonly args: readonly string[];
  /** Variables beside those that every server inherits. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** `per-session`: one process for each backend session; `shared`: one for all callers of the route. */
  readonly process: 'per-session' | 'shared';
}

export interface BackendConfig {
  /** http or https, without credentials and fragment; undefined where there is a command. */
  readonly url?: string;
  /** Undefined where there is a `url`. */
  readonly command?: CommandConfig;
  readonly era: EraSetting;
  readonly leg: LegSetting;
  readonly transport: 'auto' | 'streamable-http' | 'http-sse';
  /** URL for messages on HTTP+SSE, in place of the one that the server announces. */
  readonly messagesUrl?: string;
  /** By name in lower case, without headers that the gateway sets itself. */
  readonly headers: Readonly<Record<string, string>>;
  /** `Host` header in place of host and port of `url`. */
  readonly hostHeader?: string;
  /** What happens to the caller's `Authorization` header. */
  readonly authorization: 'forward' | 'drop';
  readonly forward: ForwardConfig;
}

/** What of a caller's request is forwarded beside the message and its credentials. */
export interface ForwardConfig {
  /** Names in lower case, in which `*` stands for any characters. */
  readonly headers: 'all' | 'none' | readonly string[];
  readonly query: boolean;
  /** Names in lower case of headers that change no answer. */
  readonly neutral: readonly string[];
}

export interface RouteSessionsConfig {
  /** `call`: a backend session for each call; `principal`: sessions shared by the calls of one principal. */
  readonly isolation: 'principal' | 'call';
  readonly max: number;
  readonly idleMs: number;
  /** Responses that mean a lost session, beside those that the gateway knows. */
  readonly lost: readonly LostSessionConfig[];
}

export interface LostSessionConfig {
  readonly status: number;
  /** Part of the error message or the body, case-insensitive; undefined: any. */
  readonly message?: string;
}

export interface TasksConfig {
  /** How tools that may run as tasks are called for modern clients that declare the tasks extension. */
  readonly optional: 'call' | 'task';
  readonly ttlMs: number;
  readonly max: number;
  readonly maxPerPrincipal: number;
  /** Of all callers without a credential together. */
  readonly maxAnonymous: number;
}

export interface QuestionsConfig {
  readonly timeoutMs: number;
  readonly roots: 'off' | 'cached' | 'ask';
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Of all callers without a credential together, which cannot be told apart. */
  readonly maxParkedAnonymous: number;
}

export const CACHED_METHODS = [
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
] as const;

export type CachedMethod = (typeof CACHED_METHODS)[number];

export interface CacheConfig {
  /** For results of a legacy backend; 0: not cached, undefined: the gateway's default. */
  readonly ttlMs: ReadonlyMap<string, number>;
  readonly staleIfErrorMs: number;
}

export interface TimeoutsConfig {
  readonly connectMs: number;
  /** From the start of a server to the end of the handshake. */
  readonly startMs: number;
  readonly probeMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  /** For one connection of an event stream that the client can resume; 0: unlimited. */
  readonly streamMs: number;
}
