import { expect, test, vi } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line.js';
import type { ProbeReport } from '../../src/routes/probe-report.js';
import { testContext } from './support.js';

const legacy: ProbeReport & { url: string } = {
  url: 'http://b:3000/mcp',
  era: 'legacy',
  revisions: ['2025-11-25', '2025-06-18'],
  serverInfo: { name: 'everything', version: '1.0.0' },
  capabilities: { tools: { listChanged: true }, prompts: { listChanged: false }, logging: {} },
  sessions: 'gives session ids',
  reasons: ['server/discover was answered with 400', 'initialize was answered with 2025-11-25'],
};

test('probe prints what is found out about a server', async () => {
  const { context, printed } = testContext({ probeServer: async () => legacy });
  expect(await runCommandLine(['probe', legacy.url], context)).toBe(0);
  expect(printed.stdout).toBe(
    [
      'url           http://b:3000/mcp',
      'era           legacy',
      'revisions     2025-11-25, 2025-06-18',
      'server        everything 1.0.0',
      'capabilities  tools (listChanged), prompts, logging',
      'sessions      gives session ids',
      'because       server/discover was answered with 400',
      '              initialize was answered with 2025-11-25',
      '',
    ].join('\n'),
  );
});

test('--json prints the report as JSON', async () => {
  const { context, printed } = testContext({ probeServer: async () => legacy });
  expect(await runCommandLine(['probe', '--json', legacy.url], context)).toBe(0);
  expect(JSON.parse(printed.stdout)).toEqual(legacy);
});

test('a server of unknown era is exit code 1', async () => {
  const reasons = ['server/discover: connection refused'];
  const report: ProbeReport = { url: 'http://b', era: 'unknown', revisions: [], reasons };
  const { context, printed } = testContext({ probeServer: async () => report });
  expect(await runCommandLine(['probe', 'http://b'], context)).toBe(1);
  expect(printed.stdout).toContain('era      unknown\nbecause  server/discover: connection refused\n');
});

test('headers and the time limit are passed on', async () => {
  const probeServer = vi.fn(async () => legacy);
  const { context } = testContext({ probeServer });
  const headers = ['--header', 'Authorization: Bearer a:b', '--header', 'X-Empty:'];
  await runCommandLine(['probe', 'http://b', '--timeout', '500ms', ...headers], context);
  expect(probeServer).toHaveBeenCalledWith('http://b', {
    timeoutMs: 500,
    headers: { authorization: 'Bearer a:b', 'x-empty': '' },
  });
});

test('the arguments after -- are a server to start, with its own options', async () => {
  const probeServer = vi.fn(
    async () => ({ ...legacy, url: undefined, command: ['npx', '-y', 'x'] }) as never,
  );
  const { context, printed } = testContext({ probeServer });
  const words = ['probe', '--timeout', '1s', '--', 'npx', '-y', 'x', '--help', '--header'];
  expect(await runCommandLine(words, context)).toBe(0);
  expect(probeServer).toHaveBeenCalledWith(words.slice(4), { timeoutMs: 1000, headers: {} });
  expect(printed.stdout).toMatch(/^command +npx -y x$/m);
});

test.each([['--'], ['http://b', '--', 'npx'], ['--header', 'A: b', '--', 'npx']])(
  'a program to start excludes a URL and headers: %j %j %j',
  async (...words) => {
    const { context, printed } = testContext();
    expect(await runCommandLine(['probe', ...words], context)).toBe(2);
    expect(printed.stderr).toContain('program after --');
  },
);

test('control characters of the server are not printed', async () => {
  const serverInfo = { name: '\u001b[2Jevil\u202e', version: '1\r\n2' };
  const { context, printed } = testContext({ probeServer: async () => ({ ...legacy, serverInfo }) });
  await runCommandLine(['probe', 'http://b'], context);
  expect(printed.stdout).toContain('server        \ufffd[2Jevil\ufffd 1\ufffd\ufffd2\n');
});
