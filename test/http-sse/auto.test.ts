import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { startLegacyBackend } from '../support/misbehave.js';
import { type Loose, listen } from '../support/net.js';
import { type Peer, startV1 } from '../support/peers/index.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { SAID, type SseBackend, type SseScript, startSseBackend, TOOLS } from './scripted.js';

useVirtualTime();

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

const RESULTS = { 'tools/list': TOOLS, 'tools/call': () => SAID() };

async function gatewayTo(url: string): Promise<TestGateway> {
  const gateway = await startGateway({
    '/mcp': { backend: { url }, timeouts: { connect: '2s', start: '2s' } },
  });
  opened.push(gateway);
  return gateway;
}

async function start(script: SseScript): Promise<{ backend: SseBackend; gateway: TestGateway }> {
  const backend = await startSseBackend({ results: RESULTS, ...script });
  opened.push(backend);
  return { backend, gateway: await gatewayTo(backend.url) };
}

const call = (gateway: TestGateway) => modern(gateway.url(), 'tools/call', { name: 'echo', arguments: {} });
const told = (gateway: TestGateway) =>
  gateway.logs
    .filter(({ msg }: Loose) => msg === 'transport of the backend')
    .map(({ transport }) => transport);

describe('a server on HTTP+SSE is detected', () => {
  const refusals: Record<string, (response: ServerResponse) => void> = {
    'where it answers POST with 404': (response) => void response.writeHead(404).end('Cannot POST /sse'),
    'where it answers POST with 405': (response) => void response.writeHead(405, { allow: 'GET' }).end(),
    'where it answers POST with 405 in JSON': (response) =>
      void response
        .writeHead(405, { 'content-type': 'application/json' })
        .end('{"detail":"Method Not Allowed"}'),
    'where it answers POST with 405 in JSON-RPC': (response) =>
      void response
        .writeHead(405, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method not allowed."}}'),
    'where it answers POST with 400': (response) => void response.writeHead(400).end('sessionId is missing'),
    'where it answers POST with 415': (response) => void response.writeHead(415).end(),
    'where it answers POST with 501': (response) =>
      void response.writeHead(501, { 'content-type': 'text/html' }).end('<h1>Unsupported method</h1>'),
    'where it opens a stream on POST too': (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: endpoint\ndata: /messages?sid=nobody\n\n');
    },
  };
  test.each(Object.keys(refusals))('%s', async (name) => {
    const inner = await startSseBackend({ results: RESULTS });
    opened.push(inner);
    // Refuses POSTs to the URL of the stream, which the script does not handle.
    const front = await listen((request, response) => {
      if (request.method === 'POST' && request.url === '/sse') {
        request.resume();
        refusals[name]?.(response);
      } else void relay(request, response, inner.origin);
    });
    opened.push({ close: () => front.stop() });
    const gateway = await gatewayTo(`${front.origin}/sse`);
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
    expect(told(gateway)).toEqual(['http-sse']);
    // The next session uses the detected transport.
    inner.sessions[0]?.end();
    expect((await call(gateway)).status).toBe(200);
  });

  test('once, and the next session begins with what worked', async () => {
    const { backend, gateway } = await start({});
    expect((await call(gateway)).status).toBe(200);
    const before = backend.requests.length;
    backend.sessions[0]?.end();
    expect((await call(gateway)).status).toBe(200);
    expect(
      backend.requests
        .slice(before)
        .filter(({ url }) => url === '/sse')
        .map(({ method }) => method),
    ).toEqual(['GET']);
  });
});

const OF_CONNECTION = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive']);
const passedOn = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.has(name))) as Record<
    string,
    string
  >;

/** Forwards a request and its response. */
async function relay(request: IncomingMessage, response: ServerResponse, origin: string): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const abort = new AbortController();
  response.on('close', () => abort.abort());
  try {
    const answer = await fetch(origin + request.url, {
      method: request.method as string,
      headers: passedOn(request),
      signal: abort.signal,
      ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
    });
    const session = answer.headers.get('mcp-session-id');
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? 'text/plain',
      ...(session !== null && { 'mcp-session-id': session }),
    });
    response.flushHeaders();
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  } catch {
    response.destroy();
  }
}

describe('a refusal of both transports passes on the first one', () => {
  test('where a GET opens nothing', async () => {
    const { gateway } = await start({
      get: (_request, response) => {
        response.writeHead(404).end('Cannot GET /sse');
        return true;
      },
    });
    expect(detailOf(gateway, await call(gateway))).toMatch(/HTTP 405: no such session/);
  });

  test('where a GET opens a stream of another kind', async () => {
    const { backend, gateway } = await start({ begin: () => ': hello\n\n' });
    expect((await call(gateway)).json.error.message).toMatch(/HTTP 405/);
    expect(backend.open()).toEqual([]);
  });

  test('where the handshake is refused, and no GET is tried', async () => {
    const backend = await startLegacyBackend({
      on: { initialize: () => ({ error: { code: -32602, message: 'no such client' } }) },
    });
    opened.push(backend);
    const gateway = await gatewayTo(backend.url);
    expect((await call(gateway)).json.error.message).toContain('no such client');
    expect(backend.requests.filter(({ method }) => method === 'GET')).toEqual([]);
  });

  test('but an endpoint on another origin is reported as such', async () => {
    const { gateway } = await start({ begin: () => 'event: endpoint\ndata: http://10.0.0.9/m\n\n' });
    expect(detailOf(gateway, await call(gateway))).toContain('another origin');
  });
});

test('a server that is replaced by one of the other transport is detected again each time', async () => {
  let current: Peer | undefined;
  const front = await listen((request, response) => {
    if (current === undefined) response.destroy();
    else void relay(request, response, new URL(current.url).origin);
  });
  opened.push({ close: () => front.stop() });
  const gateway = await gatewayTo(`${front.origin}/mcp`);
  const session = await (async () => {
    current = await startV1({ sse: true });
    return legacy(gateway.url());
  })();
  const add = { name: 'add', arguments: { a: 1, b: 2 } };
  for (const next of [undefined, {}, { sse: true }, { stateless: true }, { sse: true }]) {
    if (next !== undefined) {
      const before: Peer | undefined = current;
      current = await startV1(next);
      await before?.close();
    }
    expect((await modern(gateway.url(), 'tools/call', add)).json.result?.content[0].text).toContain('is 3');
    expect((await session.request('tools/call', add)).json.result?.content[0].text).toContain('is 3');
  }
  await current?.close();
  const [sse, streamable] = ['http-sse', 'streamable-http'];
  expect(told(gateway)).toEqual([sse, streamable, sse, streamable, sse]);
});
