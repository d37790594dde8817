import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { configText } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { killAtExit } from '../../support/kill-at-exit.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { freePort, sleep, until } from '../../support/net.js';
import { legacy, modern, send } from '../../support/raw.js';

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const keep = keeper();
const scratch = mkdtempSync(join(tmpdir(), 'eragate-log-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What stands for standard output of the gateway. */
const OUTPUTS = {
  'a full disk': () => openSync('/dev/full', 'w'),
  'a pipe that nobody reads': () => 'pipe' as const,
};

describe.each(Object.entries(OUTPUTS))('a gateway whose log goes to %s', (_name, output) => {
  test('answers in every cell, tells its health, and ends when asked to', async () => {
    const old = await keep(startLegacyBackend());
    const young = await keep(startModernBackend());
    const port = await freePort();
    const file = join(scratch, `${port}.yaml`);
    const overrides = { listen: { port }, log: { level: 'trace' } };
    writeFileSync(file, configText({ '/old': old.url, '/young': young.url }, overrides));
    const child = spawn(process.execPath, [MAIN, 'serve', '--config', file], {
      stdio: ['ignore', output(), 'ignore'],
    });
    killAtExit(child);
    const ended = once(child, 'exit');
    const origin = `http://127.0.0.1:${port}`;
    await until(
      () =>
        send(`${origin}/healthz`)
          .then(({ status }) => status === 200)
          .catch(() => false),
      'it',
      15_000,
    );
    for (let i = 0; i < 100; i++) {
      const urls = [`${origin}/old`, `${origin}/young`];
      const answers = urls.map((url) => modern(url, `x/${'y'.repeat(1_800)}`));
      for (const { status } of await Promise.all(answers)) expect(status).toBeLessThan(500);
    }
    for (const path of ['/old', '/young']) {
      expect((await modern(`${origin}${path}`, 'tools/list')).status).toBe(200);
      const session = await legacy(`${origin}${path}`);
      expect((await session.request('tools/list')).status).toBe(200);
    }
    const late = sleep(5_000).then(() => 'late');
    child.kill('SIGTERM');
    expect(await Promise.race([ended, late])).toEqual([0, null]);
  });
});
