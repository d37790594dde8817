/** Builds the frozen {@link Config} from a valid file with its defaults filled in. */

import type { RawConfig, RawRoute } from './raw.js';
import { reservedHeaderReason } from './reserved-headers.js';
import {
  CACHED_METHODS,
  type CommandConfig,
  type Config,
  type ForwardConfig,
  type LogLevel,
  type RouteConfig,
} from './types.js';
import { parseDuration, parseSize } from './units.js';

/** Defaults that the schema cannot have: callers without a credential have another one. */
const PARKED_PER_PRINCIPAL = 32;
const TASKS_PER_PRINCIPAL = 32;

/** @param raw has passed the schema and the rules */
export function buildConfig(raw: RawConfig, warnings: readonly string[]): Config {
  const { listen, limits } = raw;
  return deepFreeze({
    listen: {
      host: listen.host,
      port: listen.port,
      allowedHosts: listen.allowedHosts.map((host) => host.toLowerCase()),
      allowedOrigins: listen.allowedOrigins.map(serializedOrigin),
      trustedProxies: [...listen.trustedProxies],
      keepAliveTimeoutMs: milliseconds(listen.keepAliveTimeout),
    },
    ...(raw.publicUrl !== undefined && { publicUrl: raw.publicUrl.replace(/\/+$/, '') }),
    sealKeys: [...raw.sealKeys],
    keepAliveMs: milliseconds(raw.keepAlive),
    shutdown: {
      delayMs: millisecondsOrOff(raw.shutdown.delay),
      graceMs: milliseconds(raw.shutdown.grace),
    },
    log: { level: raw.log.level.toLowerCase() as LogLevel },
    limits: {
      bodyBytes: bytes(limits.body),
      resultBytes: bytes(limits.result),
      rounds: limits.rounds,
      listeners: limits.listeners,
      sessions: limits.sessions,
      exchanges: limits.exchanges,
      processes: limits.processes,
      clientStateBytes: bytes(limits.clientState),
      cacheBytes: bytes(limits.cache),
      replayBytes: Number(limits.replay) === 0 ? 0 : bytes(limits.replay),
    },
    routes: raw.routes.map(buildRoute),
    warnings: [...warnings],
  });
}

/** What happens to the caller's `Authorization` header; the default depends on the other keys. */
function authorizationOf({ command, headers, authorization }: RawRoute['backend']): 'forward' | 'drop' {
  // A server on stdio gets no headers.
  if (command !== undefined) return 'drop';
  // A server that gets a credential of the gateway's own should not see those of its callers.
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  return authorization ?? (hasOwn ? 'drop' : 'forward');
}

function buildRoute(raw: RawRoute): RouteConfig {
  const { path, legacySse, backend, sessions, questions, tasks, cache, timeouts } = raw;
  return {
    path,
    legacySse,
    backend: {
      ...(backend.url !== undefined && { url: backend.url }),
      ...(backend.command !== undefined && { command: commandOf(backend.command, backend) }),
      era: backend.era,
      leg: backend.leg,
      transport: backend.transport,
      ...(backend.messagesUrl !== undefined && { messagesUrl: backend.messagesUrl }),
      headers: sentHeaders(backend.headers),
      ...(backend.hostHeader !== undefined && { hostHeader: backend.hostHeader }),
      authorization: authorizationOf(backend),
      forward: forwardOf(backend.forward),
    },
    sessions: {
      isolation: sessions.isolation,
      max: sessions.max,
      idleMs: milliseconds(sessions.idle),
      lost: sessions.lost.map(({ status, message }) => ({
        status,
        ...(message !== undefined && { message }),
      })),
    },
    questions: {
      timeoutMs: milliseconds(questions.timeout),
      roots: questions.roots,
      maxParked: questions.maxParked,
      maxParkedPerPrincipal: questions.maxParkedPerPrincipal ?? PARKED_PER_PRINCIPAL,
      maxParkedAnonymous: questions.maxParkedPerPrincipal ?? questions.maxParked,
    },
    tasks: {
      optional: tasks.optional,
      ttlMs: milliseconds(tasks.ttl),
      max: tasks.max,
      maxPerPrincipal: tasks.maxPerPrincipal ?? TASKS_PER_PRINCIPAL,
      maxAnonymous: tasks.maxPerPrincipal ?? tasks.max,
    },
    cache: {
      ttlMs: new Map(
        CACHED_METHODS.filter((method) => cache[method] !== undefined).map((method) => [
          method,
          millisecondsOrOff(cache[method] as string),
        ]),
      ),
      staleIfErrorMs: cache.staleIfError === undefined ? 0 : millisecondsOrOff(cache.staleIfError),
    },
    timeouts: {
      connectMs: milliseconds(timeouts.connect),
      startMs: milliseconds(timeouts.start),
      probeMs: milliseconds(timeouts.probe),
      idleMs: milliseconds(timeouts.idle),
      totalMs: milliseconds(timeouts.total),
      streamMs: millisecondsOrOff(timeouts.stream),
    },
  };
}

function forwardOf({ headers, query, neutral }: ForwardConfig): ForwardConfig {
  const lower = (name: string): string => name.toLowerCase();
  return {
    headers: typeof headers === 'string' ? headers : headers.map(lower),
    query,
    neutral: neutral.map(lower),
  };
}

function commandOf(command: string, { args, env, cwd, process }: RawRoute['backend']): CommandConfig {
  return {
    command,
    args: args ?? [],
    env: { ...env },
    ...(cwd !== undefined && { cwd }),
    process: process ?? 'per-session',
  };
}

function sentHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => reservedHeaderReason(name) === undefined)
      .map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** The serialization of browsers: lower case, without the default port of the scheme. */
function serializedOrigin(text: string): string {
  return /^https?:/i.test(text) && URL.canParse(text) ? new URL(text).origin : text.toLowerCase();
}

function millisecondsOrOff(text: string): number {
  return text === 'off' ? 0 : milliseconds(text);
}

function milliseconds(text: string): number {
  return checked(parseDuration(text), text);
}

function bytes(value: string | number): number {
  return checked(parseSize(value), value);
}

function checked(parsed: number | undefined, value: string | number): number {
  if (parsed === undefined) throw new TypeError(`not validated: ${value}`);
  return parsed;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}
