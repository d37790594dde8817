import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { legacy, modern, modernRequest, type RawResponse, send, wire } from '../../support/raw.js';

let old: ScriptedBackend;
let young: ScriptedBackend;
let gateway: TestGateway;
beforeAll(async () => {
  old = await startLegacyBackend();
  young = await startModernBackend();
  gateway = await startGateway(
    {
      '/old': { backend: { url: old.url }, legacySse: true },
      '/young': { backend: { url: young.url } },
      '/down': { backend: { url: 'http://127.0.0.1:1/mcp' } },
    },
    { limits: { body: 2_000 } },
  );
});
afterAll(async () => {
  await gateway.close();
  await old.close();
  await young.close();
});

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const MODERN_LIST = modernRequest('tools/list');

/** Refused requests by kind: the request, the status, and what the line says. */
const KINDS: Record<string, [ask: (url: string) => Promise<RawResponse>, status: number, reason: RegExp]> = {
  'an unknown path': [(url) => send(`${url}/no?token=secret`, { body: LIST }), 404, /no route/],
  'an unknown session': [
    (url) => send(url, { body: LIST, headers: { 'mcp-session-id': 'x' } }),
    404,
    /Session not found/,
  ],
  'a missing session': [(url) => send(url, { body: LIST }), 400, /Mcp-Session-Id/],
  'another method': [(url) => send(url, { method: 'PUT' }), 405, /Method Not Allowed: PUT/],
  'a GET without a session': [(url) => send(url), 405, /./],
  'a body that is too large': [
    (url) => send(url, { body: { ...LIST, params: 'x'.repeat(3_000) } }),
    413,
    /./,
  ],
  'another media type': [
    (url) => send(url, { body: 'a', headers: { 'content-type': 'text/plain' } }),
    415,
    /Content-Type/,
  ],
  'no JSON': [(url) => send(url, { body: '{' }), 400, /Invalid JSON/],
  'headers that contradict the body': [
    (url) => send(url, { ...MODERN_LIST, headers: { ...MODERN_LIST.headers, 'Mcp-Method': 'tools/call' } }),
    400,
    /Mcp-Method/i,
  ],
  'an unknown version': [
    (url) => modern(url, 'tools/list', {}, { version: '2099-01-01' }),
    400,
    /2099-01-01|version/i,
  ],
  'another host': [(url) => send(url, { body: LIST, headers: { host: 'evil.example' } }), 403, /Host evil/],
  'another origin': [
    (url) => send(url, { body: LIST, headers: { origin: 'https://evil.example' } }),
    403,
    /Origin/,
  ],
};

/** The lines of a request, without those of level debug. */
async function linesOf(id: unknown): Promise<readonly Record<string, unknown>[]> {
  const own = () => gateway.logs.filter(({ requestId, level }) => requestId === id && level >= 30);
  await until(() => own().length > 0, 'the line');
  return own();
}

describe.each(['/old', '/young'])('one line at info tells of a request that is refused: %s', (path) => {
  test.each(Object.entries(KINDS))('%s', async (_kind, [ask, status, reason]) => {
    const response = await ask(gateway.url(path));
    expect(response.status).toBe(status);
    const lines = await linesOf(response.headers['x-request-id']);
    expect(lines).toEqual([expect.objectContaining({ level: 30, msg: 'request refused', status })]);
    expect(lines[0]?.['reason']).toMatch(reason);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });
});

test('one line tells of a message of HTTP+SSE that is refused', async () => {
  const response = await send(gateway.url('/old/messages?sessionId=secret'), { body: LIST });
  expect(response.status).toBe(404);
  const lines = await linesOf(response.headers['x-request-id']);
  expect(lines).toEqual([expect.objectContaining({ path: '/old/messages', reason: 'Session not found' })]);
});

test('one line tells of bytes that are no HTTP', async () => {
  const text = await wire(gateway.url(), 'what is this\r\n\r\n');
  const id = /^x-request-id: (.*)$/im.exec(text)?.[1]?.trim();
  expect(await linesOf(id)).toEqual([
    expect.objectContaining({ level: 30, status: 400, reason: expect.stringMatching(/^Bad Request/) }),
  ]);
});

describe('a failure of the gateway or of the backend is one line at warn', () => {
  test('to a modern client', async () => {
    const response = await modern(gateway.url('/down'), 'tools/list');
    expect(response.status).toBeGreaterThanOrEqual(500);
    expect(await linesOf(response.headers['x-request-id'])).toEqual([
      expect.objectContaining({ level: 40, status: response.status, route: '/down' }),
    ]);
  });

  test('to a legacy client', async () => {
    await legacy(gateway.url('/down'));
    const failed = () =>
      gateway.logs.filter(({ route, method }) => route === '/down' && method === 'initialize');
    await until(() => failed().length > 0, 'the line');
    expect(failed()).toEqual([expect.objectContaining({ level: 40 })]);
  });

  test('by a stage', async () => {
    using _ = gateway.attach({ admit: () => ({ status: 503, code: -32000, message: 'Busy' }) });
    const response = await modern(gateway.url('/old'), 'tools/list');
    expect(await linesOf(response.headers['x-request-id'])).toEqual([
      expect.objectContaining({ level: 40, status: 503, reason: 'Busy' }),
    ]);
  });
});

test('requests that are served have the line of their exchange alone', async () => {
  const response = await modern(gateway.url('/old'), 'tools/list');
  expect(await linesOf(response.headers['x-request-id'])).toEqual([
    expect.objectContaining({ level: 30, method: 'tools/list', outcome: 'ok' }),
  ]);
});

test('an outcome with an error status has the line of its exchange alone', async () => {
  const response = await modern(gateway.url('/young'), 'x/unknown');
  expect(response.status).toBeGreaterThanOrEqual(400);
  await until(
    () =>
      gateway.logs.some(
        ({ requestId, msg }) => requestId === response.headers['x-request-id'] && msg === 'request',
      ),
    'the debug line',
  );
  expect(await linesOf(response.headers['x-request-id'])).toHaveLength(1);
});
