import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { configText, type RouteOptions } from './gateway.js';
import { freePort, type Loose, sleep, until } from './net.js';
import { send } from './raw-http.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A gateway in a process of its own, from the sources as they are. */
export interface GatewayProcess {
  url(path?: string): string;
  /**
   * Memory of the process that is resident, in bytes: now, and at most since `settle`. Undefined where the system does
   * not tell.
   */
  memory(): { now: number; peak: number } | undefined;
  /** Lets go of what nobody refers to any more, and begins a new peak. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** Collects garbage when asked by a signal that nothing else uses. */
const COLLECTS = `data:text/javascript,process.on('SIGWINCH', () => globalThis.gc())`;

/** Compiles the sources to where the packages and package.json of this one are found. */
async function build(folder: string): Promise<string> {
  for (const name of ['package.json', 'node_modules', 'config'])
    symlinkSync(join(ROOT, name), join(folder, name));
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  const options = ['-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist'), '--declaration', 'false'];
  await promisify(execFile)(compiler, options, { cwd: ROOT });
  return join(folder, 'dist/main.js');
}

/** Like `startGateway`, but as a child process. */
export async function startGatewayProcess(
  routes: Record<string, RouteOptions>,
  overrides: Record<string, Loose> = {},
): Promise<GatewayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'eragate-test-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  let child: ChildProcess;
  const port = await freePort();
  const url = (path = Object.keys(routes)[0] ?? '/') => `http://127.0.0.1:${port}${path}`;
  try {
    const main = await build(folder);
    const file = join(folder, 'gateway.yaml');
    writeFileSync(file, configText(routes, { ...overrides, listen: { port } }));
    child = spawn(process.execPath, ['--expose-gc', '--import', COLLECTS, main, '--config', file], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    await until(
      async () => {
        if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}`);
        return (await send(url('/healthz')).catch(() => undefined))?.status === 200;
      },
      'the gateway to listen',
      20_000,
    );
  } catch (error) {
    removeFolder();
    throw error;
  }
  const proc = `/proc/${child.pid}`;
  const kilobytes = (status: string, name: string) =>
    1024 * Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]);
  return {
    url,
    memory() {
      if (process.platform !== 'linux') return undefined;
      const status = readFileSync(`${proc}/status`, 'utf8');
      return { now: kilobytes(status, 'VmRSS'), peak: kilobytes(status, 'VmHWM') };
    },
    async settle() {
      child.kill('SIGWINCH');
      await sleep(150);
      if (process.platform === 'linux') writeFileSync(`${proc}/clear_refs`, '5');
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }
      removeFolder();
    },
  };
}
