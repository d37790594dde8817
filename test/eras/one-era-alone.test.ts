import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../support/misbehave.js';
import { startGatewayProcess } from '../support/process.js';
import { legacy, modern, type RawResponse } from '../support/raw.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Builds the gateway without an era: without its folder, and without the lines of `eras/index.ts` that name it.
 * @returns what the compiler says
 */
async function buildWithout(era: string, directory: string): Promise<string> {
  cpSync(join(ROOT, 'src'), join(directory, 'src'), { recursive: true });
  rmSync(join(directory, 'src/eras', era), { recursive: true });
  const index = join(directory, 'src/eras/index.ts');
  const lines = readFileSync(index, 'utf8').split('\n');
  writeFileSync(index, lines.filter((line) => !new RegExp(`\\b${era}\\b`).test(line)).join('\n'));
  for (const name of ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'config', 'node_modules'])
    symlinkSync(join(ROOT, name), join(directory, name));
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  const options = ['-p', 'tsconfig.build.json', '--declaration', 'false', '--sourceMap', 'false'];
  return promisify(execFile)(compiler, options, { cwd: directory }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

describe('an era is a room that can be torn down', () => {
  const closing: (() => Promise<void>)[] = [];
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'eragate-era-'));
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    rmSync(scratch, { recursive: true });
  });

  /** The response to a call through the gateway that is built in a directory. */
  async function callThrough(
    directory: string,
    backend: ScriptedBackend,
    call: (url: string) => Promise<RawResponse>,
  ): Promise<RawResponse> {
    closing.push(() => backend.close());
    const gateway = await startGatewayProcess(
      { '/mcp': backend.url },
      {},
      { main: join(directory, 'dist/main.js') },
    );
    closing.push(() => gateway.close());
    return call(gateway.url('/mcp'));
  }

  const params = { name: 'echo', arguments: { text: 'hello' } };
  const on = { 'tools/call': () => ({ result: { content: [{ type: 'text', text: 'hello' }] } }) };
  const CALLS: Readonly<Record<string, (directory: string) => Promise<RawResponse>>> = {
    legacy: async (directory) =>
      callThrough(directory, await startModernBackend({ on }), (url) => modern(url, 'tools/call', params)),
    modern: async (directory) =>
      callThrough(directory, await startLegacyBackend({ on }), async (url) =>
        (await legacy(url)).request('tools/call', params),
      ),
  };

  test.each(Object.entries(CALLS))(
    'without %s the rest compiles, and serves a call',
    async (era, call) => {
      const directory = join(scratch, era);
      mkdirSync(directory);
      expect(await buildWithout(era, directory)).toBe('');
      const response = await call(directory);
      expect(response.status).toBe(200);
      expect(response.text).toContain('"text":"hello"');
    },
    60_000,
  );
});
