/**
 * The configuration as the rest of the gateway sees it: defaults filled in, durations in milliseconds, sizes in bytes,
 * frozen to the leaves. What each key means to the person who writes the file is told in `config/eragate.schema.json`.
 */

/** The dated revisions that a backend can be pinned to. */
export const CONFIG_REVISIONS = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
] as const;

export type ConfigRevision = (typeof CONFIG_REVISIONS)[number];

/** How the era of a backend is known: found out (`auto`), or pinned to an era or to one revision of it. */
export type EraSetting = 'auto' | 'legacy' | 'modern' | ConfigRevision;

/** Which leg of a backend that speaks both eras is used; `auto` takes the one that needs the least translation. */
export type LegSetting = 'auto' | 'legacy' | 'modern';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface Config {
  readonly listen: ListenConfig;
  /** What clients type to reach the gateway, without a trailing slash. */
  readonly publicUrl?: string;
  /** The first seals, all open. Empty: a random key for the life of the process. */
  readonly sealKeys: readonly string[];
  /** Pause between comments on a quiet event stream. */
  readonly keepAliveMs: number;
  readonly log: { readonly level: LogLevel };
  readonly limits: LimitsConfig;
  /** At least one; no two with one path. */
  readonly routes: readonly RouteConfig[];
  /** What is valid but probably not meant; one line each, with file, line and column. */
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
}

export interface LimitsConfig {
  readonly bodyBytes: number;
  readonly resultBytes: number;
  /** Rounds of questions in one call. */
  readonly rounds: number;
  readonly listeners: number;
  readonly sessions: number;
  readonly exchanges: number;
  /** Servers on standard streams that run at a time, over all routes. */
  readonly processes: number;
  /** For kept results, on each route. */
  readonly cacheBytes: number;
  /** For what legacy clients may miss while their connection is broken, in all; 0 for nothing. */
  readonly replayBytes: number;
}

export interface RouteConfig {
  /** Begins with a slash. */
  readonly path: string;
  /** Whether clients may come by HTTP+SSE, on `<path>/sse` and `<path>/messages`. */
  readonly legacySse: boolean;
  readonly backend: BackendConfig;
  readonly sessions: RouteSessionsConfig;
  readonly questions: QuestionsConfig;
  readonly tasks: TasksConfig;
  readonly cache: CacheConfig;
  readonly timeouts: TimeoutsConfig;
}

/** A server on standard streams that the gateway starts itself. */
export interface CommandConfig {
  /** A program, found by PATH unless it holds a slash; no shell reads it. */
  readonly command: string;
  readonly args: readonly string[];
  /** Beside the few variables that every program is given. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** `per-session` starts one for each backend session; `shared` serves all callers of the route with one. */
  readonly process: 'per-session' | 'shared';
}

export interface BackendConfig {
  /** http or https, without credentials and fragment; undefined where a command stands in its place. */
  readonly url?: string;
  /** Present where there is no `url`. */
  readonly command?: CommandConfig;
  readonly era: EraSetting;
  readonly leg: LegSetting;
  readonly transport: 'auto' | 'streamable-http' | 'http-sse';
  /** Where messages go on HTTP+SSE, in place of what the server announces. */
  readonly messagesUrl?: string;
  /** Names in lower case; headers that the gateway sets itself are not among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as `Host` in place of the authority of `url`. */
  readonly hostHeader?: string;
  /** What happens to the caller's `Authorization`. */
  readonly authorization: 'forward' | 'drop';
}

export interface RouteSessionsConfig {
  /** `call` opens a backend session for every call; `principal` shares them among the calls of one principal. */
  readonly isolation: 'principal' | 'call';
  readonly max: number;
  readonly idleMs: number;
  /** Answers that mean a lost session, beside those that are known to. */
  readonly lost: readonly LostSessionConfig[];
}

export interface LostSessionConfig {
  readonly status: number;
  /** A part of the error message or the body, in any case of letters; undefined: whatever it says. */
  readonly message?: string;
}

export interface TasksConfig {
  /** How tools that may run as tasks are called for modern clients that know tasks. */
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
  /** Of all callers without a credential together: they may be many, and none can be told from another. */
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
  /** For results of a legacy backend; 0 for none, undefined for what the gateway thinks right. */
  readonly ttlMs: Readonly<Partial<Record<CachedMethod, number>>>;
  readonly staleIfErrorMs: number;
}

export interface TimeoutsConfig {
  readonly connectMs: number;
  /** For a server that is started to take part in the handshake. */
  readonly startMs: number;
  readonly probeMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  /** For one connection of a client that knows how to come back for the rest of its stream; 0: as long as it lasts. */
  readonly streamMs: number;
}
