import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Refusal } from '../../src/http/errors.js';
import type { HttpRequest, ResponseSummary, Stage } from '../../src/http/pipeline.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend } from '../support/misbehave.js';
import { until } from '../support/net.js';
import { legacy, modern, modernRequest, open, wire } from '../support/raw.js';

let backend: ScriptedBackend;
let gateway: TestGateway;
beforeAll(async () => {
  backend = await startLegacyBackend();
  gateway = await startGateway(
    { '/mcp': { backend: { url: backend.url }, legacySse: true } },
    { limits: { body: 2_000 } },
  );
});
afterAll(async () => {
  await gateway.close();
  await backend.close();
});

const attached: Disposable[] = [];
afterEach(() => {
  for (const attachment of attached.splice(0)) attachment[Symbol.dispose]();
});
const attach = (stage: Stage): void => void attached.push(gateway.attach(stage));

interface Seen {
  readonly id: string;
  readonly calls: string[];
  response: ResponseSummary | undefined;
}

/** Records what each request was seen doing, by its id. */
class Recording implements Required<Stage> {
  readonly requests = new Map<HttpRequest, Seen>();

  get seen(): Seen[] {
    return [...this.requests.values()];
  }

  onRequest = (request: HttpRequest): void => this.#note(request, 'request');
  onResponse = (request: HttpRequest, response: ResponseSummary): void => {
    this.#note(request, 'response');
    const seen = this.requests.get(request);
    if (seen !== undefined) seen.response = response;
  };
  admit = (request: HttpRequest): undefined => this.#note(request, 'admit');
  admitMessage = (request: HttpRequest): undefined => this.#note(request, 'message');

  #note(request: HttpRequest, call: string): undefined {
    const seen = this.requests.get(request) ?? { id: request.id, calls: [], response: undefined };
    this.requests.set(request, seen);
    seen.calls.push(call);
  }
}

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
  attach(recording);
});

interface Written {
  readonly start: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A request as bytes, on a connection of its own. */
function bytesOf({ start, headers = {}, body }: Written): string {
  const all = {
    Host: 'localhost',
    Connection: 'close',
    ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).filter(([, value]) => value !== '');
  return `${start}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body ?? ''}`;
}

const JSON_TYPE = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const post = (body: unknown, headers: Record<string, string> = {}, path = '/mcp'): string =>
  bytesOf({
    start: `POST ${path} HTTP/1.1`,
    headers: { ...JSON_TYPE, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const plain = (start: string, headers: Record<string, string> = {}): string => bytesOf({ start, headers });

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};
const discover = modernRequest('server/discover');

const ALL = ['request', 'admit', 'message', 'response'];
const NO_MESSAGE = ['request', 'admit', 'response'];
/** Answered before admission: CORS preflights, and what Fastify or node cannot read. */
const NOT_ADMITTED = ['request', 'response'];
/** Refused by the guard, the first stage: those behind it are not asked. */
const GUARDED = ['request', 'response'];

/** Every kind of request: its bytes, the status of its response, and the stages that it passes. */
const KINDS: Record<string, [bytes: string, status: number, calls: readonly string[]]> = {
  'a modern request': [
    post(String(discover.body), { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' }),
    200,
    ALL,
  ],
  'a modern request that is refused': [post(String(discover.body)), 400, ALL],
  'a legacy handshake': [post(INITIALIZE), 200, ALL],
  'a legacy request without a session': [post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }), 400, ALL],
  'a legacy request of an unknown session': [
    post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'Mcp-Session-Id': 'x' }),
    404,
    ALL,
  ],
  'a legacy notification': [post({ jsonrpc: '2.0', method: 'notifications/x' }), 400, ALL],
  'a batch': [post([INITIALIZE]), 400, ALL],
  'a POST with a slash at the end of the path': [post(INITIALIZE, {}, '/mcp/'), 200, ALL],
  'a POST with a query': [post(INITIALIZE, {}, '/mcp?x=1'), 200, ALL],
  'a POST of a page': [post(INITIALIZE, { Origin: 'http://localhost' }), 200, ALL],
  'a POST that expects 100-continue': [post(INITIALIZE, { Expect: '100-continue' }), 200, ALL],
  'a POST with another expectation': [post(INITIALIZE, { Expect: 'a-miracle' }), 417, GUARDED],
  'a POST that asks for an upgrade': [
    post(INITIALIZE, { Connection: 'Upgrade, close', Upgrade: 'websocket' }),
    200,
    ALL,
  ],
  'a POST in HTTP/1.0': [
    bytesOf({ start: 'POST /mcp HTTP/1.0', headers: JSON_TYPE, body: JSON.stringify(INITIALIZE) }),
    200,
    ALL,
  ],
  'a POST of no JSON': [post('{'), 400, NO_MESSAGE],
  'a POST of another media type': [post('a=b', { 'Content-Type': 'text/plain' }), 415, NO_MESSAGE],
  'a POST that is too long': [post(JSON.stringify('x'.repeat(3_000))), 413, NO_MESSAGE],
  'a POST with an unknown content coding': [post('{}', { 'Content-Encoding': 'x' }), 415, NO_MESSAGE],
  'a POST without a body': [plain('POST /mcp HTTP/1.1', JSON_TYPE), 400, NO_MESSAGE],
  'a GET without a session': [plain('GET /mcp HTTP/1.1'), 405, NO_MESSAGE],
  'a modern GET': [plain('GET /mcp HTTP/1.1', { 'MCP-Protocol-Version': '2026-07-28' }), 405, NO_MESSAGE],
  'a DELETE without a session': [plain('DELETE /mcp HTTP/1.1'), 405, NO_MESSAGE],
  'a PUT': [bytesOf({ start: 'PUT /mcp HTTP/1.1', body: '{}' }), 405, NO_MESSAGE],
  'a HEAD': [plain('HEAD /mcp HTTP/1.1'), 405, NO_MESSAGE],
  'a PROPFIND': [plain('PROPFIND /mcp HTTP/1.1'), 405, NO_MESSAGE],
  'OPTIONS of a program': [plain('OPTIONS /mcp HTTP/1.1'), 204, NO_MESSAGE],
  'OPTIONS of a page that is not allowed': [
    plain('OPTIONS /mcp HTTP/1.1', {
      Origin: 'https://evil.example',
      'Access-Control-Request-Method': 'POST',
    }),
    403,
    GUARDED,
  ],
  'a CORS preflight': [
    plain('OPTIONS /mcp HTTP/1.1', { Origin: 'http://localhost', 'Access-Control-Request-Method': 'POST' }),
    204,
    NOT_ADMITTED,
  ],
  'a POST of a page that is not allowed': [
    post(INITIALIZE, { Origin: 'https://evil.example' }),
    403,
    GUARDED,
  ],
  'a POST to another host': [post(INITIALIZE, { Host: 'evil.example' }), 403, GUARDED],
  'a POST without a host': [post(INITIALIZE, { Host: '' }), 400, GUARDED],
  'a message of HTTP+SSE without a stream': [post(INITIALIZE, {}, '/mcp/messages?sessionId=x'), 404, ALL],
  'a message of HTTP+SSE that is no JSON': [post('{', {}, '/mcp/messages'), 400, NO_MESSAGE],
  'a GET on the path for messages': [plain('GET /mcp/messages HTTP/1.1'), 405, NO_MESSAGE],
  'OPTIONS on the path for messages': [plain('OPTIONS /mcp/messages HTTP/1.1'), 204, NO_MESSAGE],
  'a POST on the path of the stream': [post(INITIALIZE, {}, '/mcp/sse'), 405, NO_MESSAGE],
  'a stream of HTTP+SSE for a client that accepts none': [
    plain('GET /mcp/sse HTTP/1.1', { Accept: 'application/json' }),
    406,
    NO_MESSAGE,
  ],
  'the health check': [plain('GET /healthz HTTP/1.1'), 200, NO_MESSAGE],
  'HEAD of the health check': [plain('HEAD /healthz HTTP/1.1'), 200, NO_MESSAGE],
  'a POST to the health check': [post('{}', {}, '/healthz'), 405, NO_MESSAGE],
  'OPTIONS of the health check': [plain('OPTIONS /healthz HTTP/1.1'), 404, NO_MESSAGE],
  'the metadata': [plain('GET /.well-known/oauth-protected-resource/mcp HTTP/1.1'), 404, NO_MESSAGE],
  'a POST to the metadata': [post('{}', {}, '/.well-known/oauth-protected-resource'), 405, NO_MESSAGE],
  'a path that no route has': [plain('GET /elsewhere HTTP/1.1'), 404, NO_MESSAGE],
  'a POST to a path that no route has': [post(INITIALIZE, {}, '/elsewhere'), 404, NO_MESSAGE],
  'a malformed path': [plain('GET /%E0%A4 HTTP/1.1'), 400, NOT_ADMITTED],
  CONNECT: [plain('CONNECT example.com:443 HTTP/1.1'), 405, NOT_ADMITTED],
  'bytes that are no HTTP': ['what is this\r\n\r\n', 400, NOT_ADMITTED],
  'a preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, NOT_ADMITTED],
  'headers that are too long': [
    plain('GET /mcp HTTP/1.1', { 'X-Long': 'x'.repeat(70_000) }),
    431,
    NOT_ADMITTED,
  ],
  'a body with broken chunks': [
    `${post('', { 'Content-Length': '', 'Transfer-Encoding': 'chunked' })}nonsense\r\n\r\n`,
    400,
    NO_MESSAGE,
  ],
};

/** Status and `X-Request-Id` of each response in the bytes of a connection. */
function responsesIn(text: string): { status: number; id: string | undefined }[] {
  const heads = [...text.matchAll(/HTTP\/1\.1 (?!100)(\d{3}) [\s\S]*?\r\n\r\n/g)];
  return heads.map(([head, status]) => ({
    status: Number(status),
    id: /^x-request-id: (.*)$/im.exec(head)?.[1]?.trim(),
  }));
}

describe('every kind of request passes each stage once, and its client gets its id', () => {
  test.each(Object.entries(KINDS))('%s', async (_kind, [bytes, status, calls]) => {
    const [response, ...others] = responsesIn(await wire(gateway.url(), bytes));
    expect(others).toEqual([]);
    expect(response?.status).toBe(status);
    await until(() => recording.seen.every(({ response: over }) => over !== undefined), 'the end');
    expect(recording.seen).toEqual([
      { id: response?.id, calls: [...calls], response: expect.objectContaining({ status }) },
    ]);
  });

  test('requests on one connection, also those that come together, and bytes after them', async () => {
    const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    const keep = { Connection: 'keep-alive' };
    socket.write(
      post(INITIALIZE, keep) + plain('GET /healthz HTTP/1.1', keep) + plain('GET /elsewhere HTTP/1.1', keep),
    );
    await until(() => responsesIn(text).length === 3, 'the responses');
    socket.write('what is this\r\n\r\n');
    await once(socket, 'close');
    const responses = responsesIn(text);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 404, 400]);
    await until(() => recording.seen.every(({ response }) => response !== undefined), 'the ends');
    expect(recording.seen.map(({ id }) => id)).toEqual(responses.map(({ id }) => id));
    expect(recording.seen.map(({ calls }) => calls)).toEqual([ALL, NO_MESSAGE, NO_MESSAGE, NOT_ADMITTED]);
  });

  test('a session: its calls, its GET stream and its DELETE', async () => {
    const session = await legacy(gateway.url());
    const stream = await session.listen();
    const called = await session.request('tools/call', { name: 'echo', arguments: {} });
    expect((await session.notify('notifications/roots/list_changed')).status).toBe(202);
    expect(recording.seen.filter(({ response }) => response === undefined)).toHaveLength(1);
    expect((await session.delete()).status).toBe(200);
    await stream.done;
    const responses = [session.initialize, session.initialized, stream, called];
    await until(() => recording.seen.every(({ response }) => response !== undefined), 'the ends');
    expect(recording.seen.map(({ calls }) => calls)).toEqual([ALL, ALL, NO_MESSAGE, ALL, ALL, NO_MESSAGE]);
    expect(recording.seen.slice(0, 4).map(({ id }) => id)).toEqual(
      responses.map((response) => response?.headers['x-request-id']),
    );
  });

  test('a client of HTTP+SSE: its stream and its messages', async () => {
    const stream = await open(gateway.url('/mcp/sse'), { headers: { accept: 'text/event-stream' } });
    const { data } = await stream.find(({ event }) => event === 'endpoint');
    const text = await wire(gateway.url(), post(INITIALIZE, {}, data));
    expect(responsesIn(text)).toEqual([{ status: 202, id: recording.seen[1]?.id }]);
    await stream.find(({ json }) => json?.id === 1);
    expect(recording.seen.map(({ calls }) => calls)).toEqual([['request', 'admit'], ALL]);
    expect(recording.seen[0]?.id).toBe(stream.headers['x-request-id']);
    stream.abort();
    await until(() => recording.seen.every(({ response }) => response !== undefined), 'the ends');
    expect(recording.seen[0]).toMatchObject({
      calls: NO_MESSAGE,
      response: { status: 200, complete: false },
    });
  });

  test('a client that closes its connection before the response', async () => {
    backend.on('tools/call', () => undefined);
    try {
      const abort = new AbortController();
      const call = modern(gateway.url(), 'tools/call', { name: 'echo' }, { signal: abort.signal });
      await until(() => recording.seen.length === 1, 'the request');
      abort.abort();
      await expect(call).rejects.toThrow();
      await until(() => recording.seen[0]?.response !== undefined, 'the end');
      expect(recording.seen).toMatchObject([{ calls: ALL, response: { complete: false } }]);
    } finally {
      backend.on('tools/call', undefined);
    }
  });
});

const NO: Refusal = { status: 429, code: -32000, message: 'Too many', headers: { 'retry-after': '7' } };

describe('a stage', () => {
  test.each([
    ['at once', () => NO],
    ['later', async () => NO],
  ])(
    'refuses requests of any transport %s, also those of pages, which can read why',
    async (_when, admit) => {
      attach({ admit });
      for (const [start, body] of [
        ['POST /mcp HTTP/1.1', JSON.stringify(INITIALIZE)],
        ['GET /mcp HTTP/1.1', undefined],
        ['GET /mcp/sse HTTP/1.1', undefined],
        ['POST /mcp/messages HTTP/1.1', '{}'],
        ['GET /healthz HTTP/1.1', undefined],
        ['GET /elsewhere HTTP/1.1', undefined],
      ] as const) {
        const headers = { ...JSON_TYPE, Origin: 'http://localhost' };
        const text = await wire(
          gateway.url(),
          bytesOf({ start, headers, ...(body !== undefined && { body }) }),
        );
        expect(text).toMatch(/^HTTP\/1\.1 429 /);
        expect(text).toMatch(/^retry-after: 7\r$/im);
        expect(text).toMatch(/^access-control-allow-origin: http:\/\/localhost\r$/im);
        expect(text).toMatch(/^access-control-expose-headers: .*X-Request-Id/im);
        expect(JSON.parse(text.split('\r\n\r\n')[1] as string)).toEqual({
          jsonrpc: '2.0',
          id: null,
          error: { code: -32000, message: 'Too many' },
        });
      }
    },
  );

  test.each([
    ['at once', () => NO],
    ['later', async () => NO],
  ])('refuses messages %s, under the id of the request', async (_when, admitMessage) => {
    attach({ admitMessage });
    const refused = await modern(gateway.url(), 'tools/list', {}, { id: 'seven' });
    expect(refused.status).toBe(429);
    expect(refused.headers['retry-after']).toBe('7');
    expect(refused.json).toEqual({
      jsonrpc: '2.0',
      id: 'seven',
      error: { code: -32000, message: 'Too many' },
    });
  });

  test('that admits later lets requests go on', async () => {
    attach({ admit: async () => undefined, admitMessage: async () => undefined });
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    expect(recording.seen).toMatchObject([{ calls: ALL }]);
  });

  test('comes after those that were attached before, which it is not asked after a refusal of', async () => {
    const order: string[] = [];
    attach({ admit: async () => void order.push('first') });
    attach({
      admit: () => {
        order.push('second');
        return NO;
      },
    });
    attach({ admit: () => void order.push('third') });
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(429);
    expect(order).toEqual(['first', 'second']);
  });

  test('sees nothing of requests that began before it, and all of those that did before it left', async () => {
    const session = await legacy(gateway.url());
    const stream = await session.listen();
    const late = new Recording();
    const attachment = gateway.attach(late);
    const other = await session.listen();
    attachment[Symbol.dispose]();
    await session.delete();
    await Promise.all([stream.done, other.done]);
    await until(() => recording.seen.every(({ response }) => response !== undefined), 'the ends');
    expect(late.seen).toMatchObject([{ id: other.headers['x-request-id'], calls: NO_MESSAGE }]);
  });

  test('that fails while it observes is logged, and does no harm', async () => {
    const fail = (): never => {
      throw new Error('the stage fails');
    };
    attach({ onRequest: fail, onResponse: fail });
    const { status, headers } = await modern(gateway.url(), 'tools/list');
    expect(status).toBe(200);
    const faults = () => gateway.logs.filter(({ err }) => err?.message === 'the stage fails');
    await until(() => faults().length === 2, 'the faults');
    expect(new Set(faults().map(({ requestId }) => requestId))).toEqual(new Set([headers['x-request-id']]));
  });

  test.each([
    ['admit', { admit: () => Promise.reject(new Error('it fails')) }],
    ['admit, at once', { admit: fails }],
    ['admitMessage', { admitMessage: () => Promise.reject(new Error('it fails')) }],
    ['admitMessage, at once', { admitMessage: fails }],
  ])('that fails while it decides refuses the request: %s', async (_name, stage) => {
    attach(stage);
    const refused = await modern(gateway.url(), 'tools/list');
    expect(refused.status).toBe(500);
    expect(refused.json.error).toEqual({ code: -32603, message: 'Internal error of the gateway' });
    expect(gateway.logs.filter(({ err }) => err?.message === 'it fails').at(-1)).toMatchObject({
      requestId: refused.headers['x-request-id'],
    });
  });
});

function fails(): never {
  throw new Error('it fails');
}
