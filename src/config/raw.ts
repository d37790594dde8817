/** A valid file with its defaults filled in; durations and sizes are still text. */

import type {
  BackendConfig,
  CachedMethod,
  CommandConfig,
  ListenConfig,
  LogLevel,
  QuestionsConfig,
  RouteSessionsConfig,
  TasksConfig,
} from './types.js';

export interface RawConfig {
  listen: Omit<ListenConfig, 'keepAliveTimeoutMs'> & { keepAliveTimeout: string };
  publicUrl?: string;
  sealKeys: string[];
  keepAlive: string;
  shutdown: { delay: string; grace: string };
  log: { level: LogLevel };
  limits: {
    body: string | number;
    result: string | number;
    rounds: number;
    listeners: number;
    sessions: number;
    exchanges: number;
    processes: number;
    clientState: string | number;
    cache: string | number;
    replay: string | number;
  };
  routes: RawRoute[];
}

export interface RawRoute {
  path: string;
  legacySse: boolean;
  backend: Omit<BackendConfig, 'command' | 'authorization'> & {
    authorization?: BackendConfig['authorization'];
    command?: string;
    args?: string[];
    env?: Record<string, string>;
    cwd?: string;
    process?: CommandConfig['process'];
  };
  sessions: Omit<RouteSessionsConfig, 'idleMs'> & { idle: string };
  questions: Pick<QuestionsConfig, 'roots' | 'maxParked'> & {
    timeout: string;
    maxParkedPerPrincipal?: number;
  };
  tasks: Pick<TasksConfig, 'optional' | 'max'> & { ttl: string; maxPerPrincipal?: number };
  cache: Partial<Record<CachedMethod | 'staleIfError', string>>;
  timeouts: Record<'connect' | 'start' | 'probe' | 'idle' | 'total' | 'stream', string>;
}
