// Eragate as it runs in production: the built command, a config file, log level info, its log thrown away.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.mjs';
import { ask, startNode } from './processes.mjs';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const HEAP_HOOK = new URL('heap-hook.mjs', import.meta.url).href;
const START_MS = 15_000;

/** The cells: which era's client calls which route. */
export const CELLS = {
  LL: { era: 'legacy', path: '/legacy' },
  LM: { era: 'legacy', path: '/modern' },
  ML: { era: 'modern', path: '/legacy' },
  MM: { era: 'modern', path: '/modern' },
};

export const isBuilt = () => existsSync(MAIN);

const folder = mkdtempSync(join(tmpdir(), 'eragate-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

export { freePort };

/** A route of the configuration; `extra` are more of its keys. */
export const route = (path, url, era, extra) => ({ path, backend: { url, era }, ...extra });

function configFile(port, limits, routes) {
  const listen = { host: '127.0.0.1', port };
  const file = join(folder, `${port}.yaml`);
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ listen, log: { level: 'info' }, limits, routes }));
  return file;
}

async function untilHealthy(child, origin) {
  const deadline = Date.now() + START_MS;
  while (child.exitCode === null && Date.now() < deadline) {
    const answer = await fetch(`${origin}/healthz`).catch(() => undefined);
    await answer?.text();
    if (answer?.ok) return;
    await delay(50);
  }
  throw new Error(`eragate did not answer ${origin}/healthz (exit code ${child.exitCode})`);
}

/**
 * Starts a gateway in front of `backend` (an origin), with the routes of the cells and the product's own limits unless
 * `routes` and `limits` say otherwise. With `heap`, the result has `heapBytes()`, the bytes in use after a garbage
 * collection.
 */
export async function startGateway(backend, { limits = {}, routes, heap = false } = {}) {
  const port = await freePort();
  const flags = heap ? ['--expose-gc', '--import', HEAP_HOOK] : [];
  const cells = [route('/legacy', `${backend}/mcp`, 'legacy'), route('/modern', `${backend}/mcp`, 'modern')];
  const serve = [MAIN, 'serve', '--config', configFile(port, limits, routes ?? cells)];
  const child = startNode([...flags, ...serve], { ipc: heap });
  const origin = `http://127.0.0.1:${port}`;
  await untilHealthy(child, origin);
  const heapBytes = async () => (await ask(child, 'heap')).heapBytes;
  return { child, pid: child.pid, origin, heapBytes };
}
