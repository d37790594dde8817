import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/net.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('npm run demo', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'eragate-demo-'));
  let demo: ChildProcess;
  let output = '';

  beforeAll(async () => {
    const config = join(scratch, 'demo.yaml');
    // The demonstration's own file, but on any free port.
    const text = readFileSync(join(ROOT, 'config/demo.yaml'), 'utf8');
    writeFileSync(config, text.replace(/port: \d+/, 'port: 0'));
    demo = spawn(process.execPath, ['config/demo.mjs', config], { cwd: ROOT, stdio: 'pipe' });
    for (const stream of [demo.stdout, demo.stderr]) {
      stream?.on('data', (chunk) => {
        output += chunk;
      });
    }
    await until(
      () => {
        if (demo.exitCode !== null) throw new Error(`the demo ended: ${output}`);
        return output.includes('Ctrl-C ends');
      },
      'the demo to print its calls',
      30_000,
    );
  });
  afterAll(() => {
    demo.kill('SIGKILL');
    rmSync(scratch, { recursive: true, force: true });
  });

  test('prints one call of each era, and both work as printed', async () => {
    const calls = output.split('\n\n').filter((block) => block.startsWith('curl '));
    expect(calls).toHaveLength(2);
    const answers = await Promise.all(calls.map((call) => promisify(execFile)('/bin/sh', ['-c', call])));
    const [modern, legacy] = answers.map(({ stdout }) => stdout);
    expect(modern).toMatch(/^HTTP\/1\.1 200/);
    expect(modern).toContain('The sum of 3 and 4 is 7.');
    expect(modern).toContain('"resultType":"complete"');
    expect(legacy).toMatch(/^HTTP\/1\.1 200/);
    expect(legacy).toMatch(/^mcp-session-id: /im);
    expect(legacy).toContain('"protocolVersion":"2025-11-25"');
  });

  test('ends the gateway and the server with Ctrl-C', async () => {
    const backend = /in front of (\S+),/.exec(output)?.[1] ?? '';
    demo.kill('SIGINT');
    const [code] = await once(demo, 'exit');
    expect(code).toBe(0);
    await until(
      () =>
        fetch(backend).then(
          () => false,
          () => true,
        ),
      'the server to be gone',
    );
  });
});
