import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { configText, type RouteOptions } from './gateway.js';
import { killAtExit } from './kill-at-exit.js';
import type { Loose } from './net.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(ROOT, 'dist/main.js');

/** A gateway in a process of its own, from the built files. */
export interface GatewayProcess {
  /** The URL of a route. */
  url(path: string): string;
  /** Log records so far, parsed; grows. */
  readonly logs: Loose[];
  readonly child: ChildProcess;
  /** Sends a signal. */
  kill(signal: NodeJS.Signals): void;
  /** The exit code, and how long after `kill` it came, in milliseconds. */
  readonly ended: Promise<{ code: number | null; ms: number }>;
  /** Ends the process if it still runs. */
  close(): Promise<void>;
}

export interface ProcessOptions {
  /** Another build to start than `dist/main.js`. */
  main?: string;
  /** Options of node. */
  node?: readonly string[];
}

/**
 * Starts `dist/main.js`, as built by `npm test`, and waits until it listens.
 * @throws Error when there is nothing built, or the gateway ends instead
 */
export async function startGatewayProcess(
  routes: Record<string, RouteOptions>,
  overrides: Record<string, Loose> = {},
  { main = MAIN, node = [] }: ProcessOptions = {},
): Promise<GatewayProcess> {
  if (!existsSync(main)) throw new Error('dist/main.js is not there: npm run build makes it');
  const scratch = mkdtempSync(join(tmpdir(), 'eragate-process-'));
  const file = join(scratch, 'gateway.yaml');
  writeFileSync(file, configText(routes, overrides));
  const child = spawn(process.execPath, [...node, main, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  killAtExit(child);
  const logs: Loose[] = [];
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  let killedAt = 0;
  const ended = once(child, 'exit').then(([code]) => {
    rmSync(scratch, { recursive: true, force: true });
    return { code: code as number | null, ms: Date.now() - killedAt };
  });
  const origin = await new Promise<string>((resolve, reject) => {
    void ended.then(({ code }) => reject(new Error(`the gateway ended with ${code}: ${errors}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const record = JSON.parse(line);
      logs.push(record);
      if (record.msg?.startsWith('listening on')) resolve(record.url);
    });
  });
  return {
    url: (path) => `${origin}${path}`,
    logs,
    child,
    kill(signal) {
      killedAt = Date.now();
      child.kill(signal);
    },
    ended,
    async close() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
