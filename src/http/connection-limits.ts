import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Logger } from 'pino';

/** How many connections of clients there may be. */
export interface ConnectionLimits {
  /** From so many on, idle ones are closed. */
  readonly idleAbove: number;
  /** Further ones are closed at once. */
  readonly max: number;
}

/** An idle connection costs some 20 KiB. */
const MAX_IDLE_ABOVE = 10_000;
/** Pause between two times that idle connections are closed, and between two warnings, in milliseconds. */
const PAUSE_MS = 1_000;

/** Within the open files that the system lets this process have; the rest is for backends, programs and files. */
export function connectionLimits(openFiles: number = openFilesLimit()): ConnectionLimits {
  return {
    idleAbove: Math.min(Math.floor(openFiles / 2), MAX_IDLE_ABOVE),
    max: Math.max(1, Math.floor((openFiles * 7) / 8) - 32),
  };
}

/** The limit of open files; infinite where the system does not tell it. */
function openFilesLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * Closes idle connections where many are open, and refuses connections that the process cannot hold, with a warning: at the
 * limit of open files the system would end them without a word, and backends could not be reached either.
 */
export function limitConnections(server: Server, { idleAbove, max }: ConnectionLimits, log: Logger): void {
  if (Number.isFinite(max)) server.maxConnections = max;
  let open = 0;
  let closedAt = Number.NEGATIVE_INFINITY;
  let warnedAt = Number.NEGATIVE_INFINITY;
  let refused = 0;
  const closeIdle = (now: number): void => {
    if (now - closedAt < PAUSE_MS) return;
    closedAt = now;
    server.closeIdleConnections();
  };
  server.on('connection', (socket) => {
    open++;
    socket.once('close', () => open--);
    if (open > idleAbove) closeIdle(performance.now());
  });
  server.on('drop', () => {
    refused++;
    const now = performance.now();
    closeIdle(now);
    if (now - warnedAt < PAUSE_MS) return;
    warnedAt = now;
    log.warn(
      { refused, connections: open, limit: max },
      'connections of clients refused: too many are open (see ulimit -n)',
    );
    refused = 0;
  });
}
