import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { legacy, modern, modernRequest, send, wire } from '../../support/raw.js';

const SERVED = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json; charset="utf-8"',
  'application/json ; charset = utf-8',
  'application/json; charset=utf8',
  'APPLICATION/JSON',
  'Application/Json; Charset=Utf-8; version=1',
  'application/json; version=1',
  'application/json;',
  ' application/json',
];
const REFUSED = [
  'application/json;charset=UTF-16',
  'application/json; charset="utf-16le"',
  'application/json; version=1; charset=latin1',
  'application/json; charset=utf-80',
  'application/json, text/plain',
  'application/json-patch+json',
  'application/vnd.api+json',
  'application/jsonl',
  'text/json',
  'text/plain',
  'text/plain; note=application/json',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'json',
  '/',
];

describe.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway({ '/mcp': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  test.each(SERVED)('a body of type "%s" is served to clients of both eras', async (type) => {
    const headers = { 'content-type': type };
    expect((await modern(gateway.url(), 'tools/list', {}, { headers })).json.result.tools).toHaveLength(1);
    const session = await legacy(gateway.url(), { headers });
    expect(session.initialized?.status).toBe(202);
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
  });

  test('a body of no type is served: there is one that it can be', async () => {
    const { headers, body } = modernRequest('tools/list');
    const { host } = new URL(gateway.url());
    const length = String(Buffer.byteLength(body as string));
    const bare = { ...headers, host, 'content-length': length };
    const answer = await send(gateway.url(), { bare: true, headers: bare, body });
    expect(answer.status).toBe(200);
    expect(answer.json.result.tools).toHaveLength(1);
  });

  test.each(REFUSED)('a body of type "%s" is refused, and never reaches the backend', async (type) => {
    const before = backend.requests.length;
    const headers = { 'content-type': type };
    for (const answer of [
      await modern(gateway.url(), 'tools/list', {}, { headers }),
      (await legacy(gateway.url(), { headers })).initialize,
    ]) {
      expect(answer.status).toBe(415);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
      expect(answer.json.error.message).toContain('application/json');
    }
    expect(backend.requests).toHaveLength(before);
  });

  test('the connection of a refused body can be used again', async () => {
    const body = 'x'.repeat(200_000);
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n`;
    const bytes = `${head}Content-Type: text/plain\r\n\r\n${body}GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const answers = await wire(gateway.url(), bytes);
    expect(answers).toMatch(/^HTTP\/1\.1 415 .*HTTP\/1\.1 200 /s);
  });

  test('the backend always gets exactly application/json', () => {
    const types = backend.requests
      .filter(({ method, body }) => method === 'POST' && body.length > 0)
      .map(({ headers }) => headers['content-type']);
    expect(new Set(types)).toEqual(new Set(['application/json']));
  });
});

describe.each(['legacy', 'modern'] as const)('an answer of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway({ '/mcp': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
    'application/json; profile="x"',
    'application/mcp+json',
  ])('of type "%s" is read as JSON', async (type) => {
    backend.on('tools/list', (step) => {
      step.sendJson(
        step.frame({ result: { resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private' } }),
        200,
        {
          'content-type': type,
        },
      );
      return undefined;
    });
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json.result.tools).toEqual([]);
  });

  test.each(['text/event-stream; charset=utf-8', 'Text/Event-Stream', 'text/event-stream;charset="UTF-8"'])(
    'of type "%s" is read as a stream',
    async (type) => {
      backend.on('tools/list', ({ stream, frame }) => {
        const events = stream({ 'content-type': type });
        events.event(
          frame({ result: { resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private' } }),
        );
        events.end();
        return undefined;
      });
      expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toEqual([]);
    },
  );

  test.each(['text/html', 'text/plain'])('of type "%s" with status 200 is an error at once', async (type) => {
    backend.on('tools/list', ({ sendText }) => {
      sendText('<h1>It works!</h1>', 200, { 'content-type': type });
      return undefined;
    });
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.status).toBe(502);
    expect(answer.json.error.code).toBe(-32603);
  });
});
