import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line.js';
import { example, testContext } from './support.js';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'eragate-check-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

async function check(text: string, env: Record<string, string> = {}) {
  const file = join(directory, 'gateway.yaml');
  writeFileSync(file, text);
  const { context, printed } = testContext({ env });
  const code = await runCommandLine(['check', file], context);
  return {
    code,
    stdout: printed.stdout.replaceAll(file, 'FILE'),
    stderr: printed.stderr.replaceAll(file, 'FILE'),
  };
}

test('check prints the routes', async () => {
  const { code, stdout, stderr } = await check(
    `
listen: { host: "::1", port: 9000 }
sealKeys: ["\${KEY}"]
routes:
  - { path: /orders, backend: { url: "http://orders:3000/mcp?token=hunter2" } }
  - path: /files
    backend: { url: "\${URL}", era: 2025-06-18, leg: legacy }
    sessions: { isolation: call }
    timeouts: { idle: 90s, total: 1h }
`,
    { KEY: 'hunter2hunter2hunter2', URL: 'https://files.example.com/mcp/hunter2' },
  );
  expect(stderr).toBe('');
  expect(stdout).toBe(
    [
      'FILE: 2 routes on [::1]:9000',
      '',
      'PATH     BACKEND                    ERA         LEG     ISOLATION  TIMEOUTS',
      '/orders  http://orders:3000         auto        auto    principal  connect 5s, probe 3s, idle 1m, total 10m',
      '/files   https://files.example.com  2025-06-18  legacy  call       connect 5s, probe 3s, idle 90s, total 1h',
      '',
    ].join('\n'),
  );
  expect(code).toBe(0);
});

test('check names a server on stdio by its program, without arguments and variables', async () => {
  const { code, stdout } = await check(`
routes:
  - path: /files
    backend: { command: /usr/bin/npx, args: [--token, hunter2], env: { TOKEN: hunter2 } }
`);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\/files +npx +auto/m);
  expect(stdout).not.toContain('hunter2');
});

test.each([
  [
    'npx',
    '[-y, "@modelcontextprotocol/server-filesystem", /data]',
    'npx -y @modelcontextprotocol/server-filesystem …',
  ],
  ['npx', '[--yes, "some-server@1.2.3"]', 'npx --yes some-server@1.2.3'],
  ['python3.12', '[-m, my_server, hunter2]', 'python3.12 -m my_server …'],
  ['/usr/bin/node', '[dist/index.js]', 'node dist/index.js'],
  ['node', '[--token=hunter2, dist/index.js]', 'node'],
  ['npx', '[-y, "postgres://user:hunter2@host/db"]', 'npx'],
  ['my-server', '[hunter2]', 'my-server'],
])('check shows which server %s %s starts, without secrets', async (command, args, shown) => {
  const { stdout } = await check(`routes: [{ path: /a, backend: { command: ${command}, args: ${args} } }]`);
  expect(stdout).toContain(`/a    ${shown}  `);
  expect(stdout).not.toContain('hunter2');
});

test('check prints warnings and exits with 0', async () => {
  const { code, stdout } = await check(
    'routes:\n  - path: /a\n    backend: { url: "http://b", headers: { Host: c } }\n',
  );
  expect(stdout).toMatch(
    /\n\nwarning: FILE:1:1: no sealKeys: .*\nwarning: FILE:3:44: .*headers.Host: not sent: .*\n$/,
  );
  expect(code).toBe(0);
});

test('check prints all problems to standard error and exits with 1', async () => {
  const { code, stdout, stderr } = await check('keepAlive: 1\nroutes: []\n');
  expect(stdout).toBe('');
  expect(stderr).toBe(
    'FILE:1:12: keepAlive: found 1, expected a duration such as 500ms, 60s, 10m or 1h30m\n' +
      'FILE:2:9: routes: found an empty list, expected a list with at least one route\n' +
      '2 problems\n',
  );
  expect(code).toBe(1);
});

test('check accepts the file with --config, as serve does', async () => {
  const { context, printed } = testContext();
  expect(await runCommandLine(['check', '--config', example('demo.yaml')], context)).toBe(0);
  expect(printed.stdout).toContain('1 route on 127.0.0.1:8080');
});
