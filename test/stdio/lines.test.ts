import { expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { until } from '../support/net.js';
import { type LegacySession, legacy, send } from '../support/raw.js';
import { startRig, textOf } from './rig.js';

const backend = { era: 'legacy' };
const call = (session: LegacySession, name: string, args = {}) =>
  session.request('tools/call', { name, arguments: args });

test('lines of standard output that are not messages are skipped, logged once and counted', async () => {
  const { url, gateway, logged } = await startRig({ backend, server: { banner: '  welcome\n\n{"a":1}\n' } });
  const session = await legacy(url);
  expect(session.initialize.status).toBe(200);
  for (let i = 0; i < 3; i++) expect(textOf((await call(session, 'noise')).json)).toBe('after the noise');
  expect(logged('not a message')).toEqual([
    expect.objectContaining({ route: '/mcp', backend: 'node', stdout: 'welcome', level: 40 }),
  ]);
  await session.delete();
  await gateway.close();
  // Two lines of the banner, and the non-empty lines around each answer.
  expect(logged('has ended')[0]?.skippedLines).toBe(2 + 3 * 13);
});

test.each([
  ['Ready{"jsonrpc":"2.0","id":9,"result":{"secret":1}}', 'Ready{…'],
  ['{"jsonrpc":"2.0","id":9,"result":{"secret":1}}{"jsonrpc":"2.0","id":8,"result":{}}', '{…'],
  ['{"id": 9, "result": {"secret": 1}}', '{…'],
  ['{"level":"info","msg":"up"}', '{"level":"info","msg":"up"}'],
])('the content of a message with other text around it is not logged: %s', async (banner, shown) => {
  const { url, logged } = await startRig({ backend, server: { banner: `${banner}\n` } });
  await legacy(url);
  expect(logged('not a message').map(({ stdout }) => stdout)).toEqual([shown]);
});

test('CRLF and byte order marks are tolerated', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url);
  for (let i = 0; i < 2; i++) expect(textOf((await call(session, 'windows')).json)).toBe('windows');
});

test('a line that arrives byte by byte is one message', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url);
  const value = 'Zażółć 🚀 gęślą jaźń';
  expect(textOf((await call(session, 'pieces', { value })).json)).toBe(value);
});

test('numbers keep all their digits', async () => {
  const { url } = await startRig({ backend });
  const { answer } = await call(await legacy(url), 'numbers');
  expect(answer).toContain('{"n":12345678901234567890, "f":1.0,"e":1E400}');
});

test('bytes that are not valid UTF-8 are replaced, and the session goes on', async () => {
  const { url, logged } = await startRig({ backend });
  const session = await legacy(url);
  expect(textOf((await call(session, 'invalid')).json)).toBe('\uFFFD\uFFFD');
  expect(textOf((await call(session, 'echo')).json)).toContain('args');
  expect(logged('deviates')[0]?.deviation).toContain('not valid UTF-8');
});

test('white space in a message of a client does not break its line', async () => {
  const { url, received } = await startRig({ backend });
  const session = await legacy(url);
  const params = '{\n "name": "echo",\r\n "arguments": {"a":\n1,\r"b": "x\\ny"}}';
  const body = `{"jsonrpc":"2.0",\n"id":7,"method":"tools/call",\n"params":${params}}`;
  const { json } = await send(url, { headers: session.headers, body });
  expect(JSON.parse(textOf(json)).args).toEqual({ a: 1, b: 'x\ny' });
  expect(received('tools/call')).toHaveLength(1);
});

test('ids that come back as strings, twice, or of no request are tolerated', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url);
  expect(textOf((await call(session, 'stringId')).json)).toBe('as a string');
  expect(textOf((await call(session, 'twice')).json)).toBe('once');
  expect((await call(session, 'nullId')).json.error.message).toBe('who asks?');
  expect((await session.request('tools/list')).json.result.tools.length).toBeGreaterThan(10);
});

test('a batch is split into its messages', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url);
  const [slow, batch] = await Promise.all([call(session, 'batched'), call(session, 'batch')]);
  expect(textOf(slow.json)).toBe('batched');
  expect(textOf(batch.json)).toBe('batch');
});

test.each([true, false])('a response above the limit fails its call only (id first: %s)', async (idFirst) => {
  const { gateway, url } = await startRig({ backend, file: { limits: { result: '100KiB' } } });
  const session = await legacy(url);
  const [big, slow] = await Promise.all([
    call(session, 'big', { bytes: 1_000_000, idFirst }),
    call(session, 'slow', { ms: 100 }),
  ]);
  expect(big.status).toBe(502);
  expect(detailOf(gateway, big)).toMatch(
    /^answer too large from node: a message of 1000\d\d\d bytes, more than 102400$/,
  );
  expect(textOf(slow.json)).toBe('done');
  expect(textOf((await call(session, 'big', { bytes: 90_000, idFirst })).json)).toHaveLength(90_000);
});

test('a line above the limit that is no response is skipped and logged', async () => {
  const { url, logged } = await startRig({ backend, file: { limits: { result: '100KiB' } } });
  const session = await legacy(url);
  expect(textOf((await call(session, 'bigNotification', { bytes: 1_000_000 })).json)).toBe('after it');
  expect(logged('too long')).toEqual([expect.objectContaining({ bytes: expect.any(Number) })]);
});

test('a message of many megabytes is passed on', async () => {
  const { url } = await startRig({ backend, file: { limits: { body: '8MiB' } } });
  const session = await legacy(url);
  const value = 'z'.repeat(5 * 2 ** 20);
  const { json } = await call(session, 'echo', { value });
  expect(JSON.parse(textOf(json)).args.value.length).toBe(value.length);
});

test('standard error is always read, and logged within bounds', async () => {
  const { url, gateway, logged } = await startRig({ backend });
  const session = await legacy(url);
  expect(textOf((await call(session, 'chatty', { lines: 2_000, bytes: 10_000 })).json)).toBe('said');
  const lines = logged('standard error');
  expect(lines.length).toBeLessThanOrEqual(101);
  expect(lines[0]).toMatchObject({ level: 20, stderr: expect.stringMatching(/^0 e{198}…$/) });
  await gateway.close();
  expect(logged('has ended')[0]?.unloggedErrorLines).toBeGreaterThan(1_800);
});

test('a program that keeps writing lines that are not messages is ended', async () => {
  const { gateway, url, running } = await startRig({ backend, server: { babble: true, silentOn: '*' } });
  expect(detailOf(gateway, (await legacy(url)).initialize)).toContain(
    'it writes lines that are not messages',
  );
  await until(() => running().length === 0, 'the process to end');
});
