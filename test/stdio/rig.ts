import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { StdioTimings } from '../../src/upstream/stdio/timings.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import type { Loose } from '../support/net.js';

export const SERVER = fileURLToPath(new URL('server.mjs', import.meta.url));

/** server-everything on standard streams. */
export const EVERYTHING: readonly string[] = [
  createRequire(import.meta.url)
    .resolve('@modelcontextprotocol/server-everything/package.json')
    .replace(/package\.json$/, 'dist/index.js'),
  'stdio',
];

export interface Rig {
  readonly gateway: TestGateway;
  readonly url: string;
  /** Pids of the processes of the server so far, in the order of their start. */
  started(): number[];
  /** Those of them that run. */
  running(): number[];
  /** Messages that processes of the server got so far, in order; of one method if it is given. */
  received(method?: string): Loose[];
  /** Answers that the server got to its own requests for roots. */
  roots(): Loose[];
  /** How many messages the tool `flood` has written, at least. */
  flooded(): number;
  /** Log records about processes. */
  logged(words: string): Loose[];
}

export interface RigOptions {
  /** Options of `server.mjs`. */
  server?: Loose;
  /** Members of `backend` beside the command. */
  backend?: Loose;
  /** Members of the route beside `backend`. */
  route?: Loose;
  /** Top-level keys of the file. */
  file?: Loose;
  /** Instead of {@link SHORT}. */
  timings?: Partial<StdioTimings>;
}

/** Short limits, since virtual time does not reach processes. */
const SHORT: Partial<StdioTimings> = { inputEndMs: 200, terminateMs: 200, lastOutputMs: 100, pingMs: 300 };

/** A gateway in front of `server.mjs`, until the test ends. */
export async function startRig({
  server = {},
  backend,
  route,
  file,
  timings,
}: RigOptions = {}): Promise<Rig> {
  const scratch = mkdtempSync(join(tmpdir(), 'eragate-stdio-'));
  const journal = join(scratch, 'journal');
  const gateway = await startGateway(
    { '/mcp': { backend: commandOf(JSON.stringify({ ...server, journal }), backend), ...route } },
    file,
    { timings: { stdio: { ...SHORT, ...timings } } },
  );
  onTestFinished(async () => {
    await gateway.close();
    rmSync(scratch, { recursive: true, force: true });
  });
  const entries = (): Loose[] =>
    existsSync(journal)
      ? readFileSync(journal, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line))
      : [];
  const started = () => entries().flatMap((entry) => entry.started ?? []);
  return {
    gateway,
    url: gateway.url(),
    started,
    running: () => started().filter(isAlive),
    received: (method) =>
      entries().filter((entry) => entry.jsonrpc && (method === undefined || entry.method === method)),
    roots: () => entries().flatMap((entry) => entry.roots ?? []),
    flooded: () => Math.max(0, ...entries().flatMap((entry) => entry.flooded ?? [])),
    logged: (words) => gateway.logs.filter(({ msg }) => msg?.includes(words)),
  };
}

/** `backend` of a route in front of `server.mjs`. */
export function commandOf(options: string, more: Loose = {}): Loose {
  return { command: process.execPath, args: [SERVER, options], ...more };
}

/** Whether a process exists, and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

/** The text of a tool's result. */
export function textOf(answer: Loose): string {
  const result = answer.result ?? answer;
  return result.content?.[0]?.text ?? JSON.stringify(answer);
}
