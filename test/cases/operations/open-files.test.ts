import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { transportErrorFrom } from '../../../src/upstream/errors.js';
import { configText } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { killAtExit } from '../../support/kill-at-exit.js';
import { startLegacyBackend } from '../../support/misbehave.js';
import { freePort, type Loose, until } from '../../support/net.js';
import { modern } from '../../support/raw.js';

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const keep = keeper();
const scratch = mkdtempSync(join(tmpdir(), 'eragate-files-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('a gateway with few open files refuses connections with a warning, and serves calls meanwhile and afterwards', async () => {
  const backend = await keep(startLegacyBackend());
  const port = await freePort();
  const file = join(scratch, 'gateway.yaml');
  writeFileSync(file, configText({ '/mcp': backend.url }, { listen: { port } }));
  const command = `ulimit -n 250; exec "${process.execPath}" "${MAIN}" serve --config "${file}"`;
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] });
  killAtExit(child);
  const logs: Loose[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => void logs.push(JSON.parse(line)));
  await until(() => logs.some(({ msg }) => msg.startsWith('listening')), 'the gateway', 15_000);
  const url = `http://127.0.0.1:${port}/mcp`;
  expect((await modern(url, 'tools/list')).status).toBe(200);
  const sockets = Array.from({ length: 300 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  const refusals = () => logs.filter(({ msg }) => /connections of clients refused/.test(msg));
  await until(() => refusals().length > 0, 'the warning');
  expect(refusals()[0]).toMatchObject({ level: 40, limit: 186 });
  for (const socket of sockets) socket.destroy();
  await until(
    () =>
      modern(url, 'tools/list')
        .then(({ status }) => status === 200)
        .catch(() => false),
    'a call',
  );
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test.each(['EMFILE', 'ENFILE'])('an error of a connection names what is missing: %s', (code) => {
  const message = `connect ${code} 127.0.0.1:80 - Local (undefined:undefined)`;
  const error = transportErrorFrom(Object.assign(new Error(message), { code }));
  expect(error.failure).toBe('unreachable');
  expect(error.message).toMatch(/no file descriptor left.*ulimit -n/);
  expect(error.message).not.toContain('undefined');
});
