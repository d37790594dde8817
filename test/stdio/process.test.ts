import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../support/net.js';
import { type GatewayProcess, startGatewayProcess } from '../support/process.js';
import { legacy, modern } from '../support/raw.js';
import { commandOf, isAlive } from './rig.js';

let gateway: GatewayProcess | undefined;
let scratch = '';
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'eragate-stdio-'));
});
afterEach(async () => {
  await gateway?.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** A gateway as a process of its own, with three processes of a server. */
async function serve(server: object): Promise<number[]> {
  const journal = join(scratch, 'journal');
  const backend = commandOf(JSON.stringify({ ...server, journal }), { era: 'legacy' });
  gateway = await startGatewayProcess({ '/mcp': { backend } });
  const url = gateway.url('/mcp');
  await Promise.all([legacy(url), legacy(url), modern(url, 'tools/list')]);
  const pids = readFileSync(journal, 'utf8')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : (JSON.parse(line).started ?? [])));
  expect(pids).toHaveLength(3);
  expect(pids.every(isAlive)).toBe(true);
  return pids;
}

test('SIGTERM ends the gateway with code 0, and its processes, within ten seconds', async () => {
  const pids = await serve({ ignoreEnd: true });
  gateway?.kill('SIGTERM');
  const ended = await gateway?.ended;
  expect(ended?.code).toBe(0);
  expect(ended?.ms).toBeLessThan(10_000);
  expect(pids.filter(isAlive)).toEqual([]);
});

test('a second signal ends the gateway and its processes at once', async () => {
  const pids = await serve({ ignoreEnd: true });
  gateway?.kill('SIGTERM');
  gateway?.kill('SIGTERM');
  await gateway?.ended;
  await until(() => pids.filter(isAlive).length === 0, 'the processes to be killed');
});

test('servers end with their input when the gateway is killed', async () => {
  const pids = await serve({});
  gateway?.kill('SIGKILL');
  await gateway?.ended;
  await until(() => pids.filter(isAlive).length === 0, 'the processes to end');
});

test('a server that is still starting does not delay the end of the gateway', async () => {
  const journal = join(scratch, 'journal');
  const backend = commandOf(JSON.stringify({ silentOn: '*', journal }), { era: 'legacy' });
  gateway = await startGatewayProcess({ '/mcp': { backend } });
  const url = gateway.url('/mcp');
  const impatient = new AbortController();
  const waiting = modern(url, 'tools/list', {}, { signal: impatient.signal }).catch(() => {});
  const started = () =>
    existsSync(journal)
      ? [...readFileSync(journal, 'utf8').matchAll(/"started":(\d+)/g)].map(([, pid]) => Number(pid))
      : [];
  await until(() => started().length === 1, 'the process');
  impatient.abort();
  await waiting;
  gateway.kill('SIGTERM');
  expect((await gateway.ended).code).toBe(0);
  expect(gateway.logs.at(-1)?.msg).toBe('closed');
  expect(started().filter(isAlive)).toEqual([]);
});
