import { afterEach, describe, expect, test } from 'vitest';
import { probeServer } from '../../src/routes/probe.js';
import { detailOf } from '../support/error-detail.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { SAID, type SseBackend, type SseScript, startSseBackend, TOOLS } from './scripted.js';

useVirtualTime();

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

async function start(
  script: SseScript,
  backend: Record<string, Loose> = {},
  path?: string,
): Promise<{ backend: SseBackend; gateway: TestGateway }> {
  const results = { 'tools/list': TOOLS, 'tools/call': () => SAID(), ...script.results };
  const server = await startSseBackend({ ...script, results }, path);
  opened.push(server);
  const gateway = await startGateway({
    '/mcp': {
      backend: { url: server.url, transport: 'http-sse', ...backend },
      timeouts: { connect: '2s', start: '2s' },
    },
  });
  opened.push(gateway);
  return { backend: server, gateway };
}

const call = (gateway: TestGateway, headers = {}) =>
  modern(gateway.url(), 'tools/call', { name: 'echo', arguments: {} }, { headers });
const posts = ({ requests }: SseBackend) => requests.filter(({ method }) => method === 'POST');

describe('the URL for messages is resolved', () => {
  const forms: Record<
    string,
    [announced: (id: string, origin: string) => string, at: (id: string) => string]
  > = {
    'as a path': [(id) => `data: /m?sid=${id}`, (id) => `/m?sid=${id}`],
    'as a relative path': [(id) => `data: m/?a=b&sid=${id}`, (id) => `/v1/m/?a=b&sid=${id}`],
    'as a path upwards': [(id) => `data: ../m?sid=${id}`, (id) => `/m?sid=${id}`],
    'as a query alone': [(id) => `data: ?sid=${id}`, (id) => `/v1/sse?sid=${id}`],
    'as a URL': [(id, origin) => `data: ${origin}/m?sid=${id}`, (id) => `/m?sid=${id}`],
    'as a URL without a scheme': [
      (id, origin) => `data: ${origin.slice(5)}/m?sid=${id}`,
      (id) => `/m?sid=${id}`,
    ],
    'with white space around': [(id) => `data:  \t/m?sid=${id} \t `, (id) => `/m?sid=${id}`],
    'without a space after the colon': [(id) => `data:/m?sid=${id}`, (id) => `/m?sid=${id}`],
    'in several lines': [(id) => `data: /m\ndata: ?sid=${id}\ndata:`, (id) => `/m?sid=${id}`],
    'with a fragment': [(id) => `data: /m?sid=${id}#there`, (id) => `/m?sid=${id}`],
    'with an id and a retry': [(id) => `id: 1\nretry: 5\ndata: /m?sid=${id}`, (id) => `/m?sid=${id}`],
    'with letters beyond ASCII': [(id) => `data: /mé/?sid=${id}`, (id) => `/m%C3%A9/?sid=${id}`],
  };
  test.each(Object.keys(forms))('%s', async (name) => {
    const [announced, at] = forms[name] as (typeof forms)[string];
    const begin: SseScript['begin'] = ({ id }, origin) => `event: endpoint\n${announced(id, origin)}\n\n`;
    const { backend, gateway } = await start({ begin }, {}, '/v1/sse');
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
    const { id } = backend.sessions[0] as { id: string };
    expect(new Set(posts(backend).map(({ url }) => url))).toEqual(new Set([at(id)]));
  });

  const streams: Record<string, (id: string) => string> = {
    'after comments and other events': (id) =>
      `: hello\n\n:\nevent: ping\ndata: x\n\nevent: endpoint\ndata: /m?sid=${id}\n\n`,
    'after a byte order mark, in lines of CRLF': (id) =>
      `\uFEFFevent: endpoint\r\ndata: /m?sid=${id}\r\n\r\n`,
    'in lines of CR': (id) => `event: endpoint\rdata: /m?sid=${id}\r\r`,
    'with the data before the name': (id) => `data: /m?sid=${id}\nevent: endpoint\n\n`,
    'in the last of two such events': (id) =>
      `event: endpoint\ndata: /old?sid=${id}\n\nevent: endpoint\ndata: /m?sid=${id}\n\n`,
  };
  test.each(Object.keys(streams))('%s', async (name) => {
    const { backend, gateway } = await start({ begin: ({ id }) => streams[name]?.(id) as string });
    expect((await call(gateway)).status).toBe(200);
    expect(new URL(posts(backend).at(-1)?.url ?? '', backend.origin).pathname).toBe('/m');
  });

  test('as configured, with the query of the announced one', async () => {
    const begin: SseScript['begin'] = ({ id }) =>
      `event: endpoint\ndata: http://10.0.0.9:8000/v1/messages?sid=${id}\n\n`;
    const backend = await startSseBackend({ begin, results: { 'tools/call': () => SAID() } });
    opened.push(backend);
    const to = async (messagesUrl: string) => {
      const gateway = await startGateway({
        '/mcp': {
          backend: { url: backend.url, transport: 'http-sse', messagesUrl, hostHeader: 'inside.example' },
        },
      });
      opened.push(gateway);
      expect((await call(gateway)).status).toBe(200);
      return { id: backend.sessions.at(-1)?.id, last: posts(backend).at(-1) };
    };
    const here = await to(`${backend.origin}/api/v1/messages?key=1`);
    expect(here.last?.url).toBe(`/api/v1/messages?key=1&sid=${here.id}`);
    expect(here.last?.headers.host).toBe('inside.example');
    // Another name is another origin, to which the configured Host does not apply.
    const { port } = new URL(backend.origin);
    const there = await to(`http://localhost:${port}/m`);
    expect(there.last?.url).toBe(`/m?sid=${there.id}`);
    expect(there.last?.headers.host).toBe(`localhost:${port}`);
  });
});

describe('no message, and no credential, is sent', () => {
  const places: Record<string, (port: string) => string> = {
    'to another host': () => 'http://10.0.0.9:8000/messages?sid=1',
    'to another port': () => 'http://127.0.0.1:1/messages?sid=1',
    'to another name of the same host': (port) => `http://localhost:${port}/messages?sid=1`,
    'by another scheme': (port) => `https://127.0.0.1:${port}/messages?sid=1`,
    'to another host, without a scheme': () => '//10.0.0.9/messages?sid=1',
    'to an invalid URL': () => 'http://:::/messages',
    'to a URL that is not HTTP': () => 'data:text/plain,x',
  };
  test.each(Object.keys(places))('%s', async (name) => {
    const { backend, gateway } = await start({
      begin: (_session, origin) => `event: endpoint\ndata: ${places[name]?.(new URL(origin).port)}\n\n`,
    });
    const answer = await call(gateway, { authorization: 'Bearer secret' });
    expect(answer.status).toBe(502);
    expect(detailOf(gateway, answer)).toMatch(/another origin.*backend\.messagesUrl|announces no URL/);
    expect(posts(backend)).toEqual([]);
    expect(
      gateway.logs.filter(({ deviation }: Loose) => /its event stream/.test(deviation ?? '')),
    ).toHaveLength(1);
    await until(() => backend.open().length === 0, 'the stream to be closed');
  });
});

describe('a backend that does not speak HTTP+SSE is reported', () => {
  const gets: Record<string, [get: SseScript['get'], said: RegExp, status: number]> = {
    'by its page': [
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>');
        return true;
      },
      /answered GET with HTTP 200 and text\/html/,
      502,
    ],
    'for a page without an end': [
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).write('<h1>Welcome</h1>');
        return true;
      },
      /answered GET with HTTP 200 and text\/html/,
      502,
    ],
    'for a refusal without an end': [
      (_request, response) => {
        response.writeHead(410, { 'content-type': 'text/plain' }).write('gone');
        return true;
      },
      /HTTP 410/,
      502,
    ],
    'by its JSON': [
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
        return true;
      },
      /answered GET with HTTP 200 and application\/json/,
      502,
    ],
    'by its refusal': [
      (_request, response) => {
        response.writeHead(405, { 'content-type': 'text/plain' }).end('only POST here');
        return true;
      },
      /HTTP 405: only POST here/,
      502,
    ],
    'for a stream that ends': [
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': bye\n\n');
        return true;
      },
      /ended before its endpoint event/,
      502,
    ],
    'by its fault': [
      (_request, response) => {
        response.writeHead(500, { 'content-type': 'text/plain' }).end('boom');
        return true;
      },
      /HTTP 500/,
      502,
    ],
  };
  test.each(Object.keys(gets))('%s', async (name) => {
    const [get, said, status] = gets[name] as (typeof gets)[string];
    const { gateway } = await start({ ...(get && { get }) });
    const answer = await call(gateway);
    expect(detailOf(gateway, answer)).toMatch(said);
    expect(answer.status).toBe(status);
  });

  test('for a stream without an endpoint event within the connect timeout', async () => {
    const { backend, gateway } = await start({ begin: () => ': wait\n\n' });
    const answer = await call(gateway);
    expect(detailOf(gateway, answer)).toMatch(/no endpoint event came within 1800 ms/);
    expect(answer.status).toBeGreaterThanOrEqual(502);
    await until(() => backend.open().length === 0, 'the stream to be closed');
  });

  test('with the status that the client needs', async () => {
    const { gateway } = await start({
      get: (_request, response) => {
        response.writeHead(401, { 'www-authenticate': 'Bearer realm="x"' }).end('log in');
        return true;
      },
    });
    const answer = await call(gateway);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="x"');
  });
});

test('the GET and the POSTs carry the fixed headers, the credential and the cookies', async () => {
  const { backend, gateway } = await start(
    { headers: { 'set-cookie': 'lb=one; Path=/' } },
    { headers: { 'x-key': 'secret' }, hostHeader: 'inside.example' },
  );
  await call(gateway, { authorization: 'Bearer t' });
  for (const { method, headers } of backend.requests) {
    expect(headers).toMatchObject({ 'x-key': 'secret', host: 'inside.example', authorization: 'Bearer t' });
    expect(headers['mcp-session-id']).toBeUndefined();
    if (method === 'POST')
      expect(headers).toMatchObject({ cookie: 'lb=one', 'content-type': 'application/json' });
    else expect(headers.accept).toBe('text/event-stream');
  }
  expect(backend.requests[0]?.method).toBe('GET');
});

test.each([301, 302, 303, 307, 308])('a stream that is redirected (%i) is followed', async (status) => {
  const { backend, gateway } = await start({
    get: (request, response) => {
      if (request.url !== '/sse') return false;
      response.writeHead(status, { location: '/sse/' }).end();
      return true;
    },
  });
  expect((await call(gateway)).status).toBe(200);
  expect(backend.requests.slice(0, 2).map(({ url }) => url)).toEqual(['/sse', '/sse/']);
});

test('probe reports the transport', async () => {
  const backend = await startSseBackend();
  opened.push(backend);
  const report = await probeServer(backend.url, { timeoutMs: 2_000 });
  expect(report).toMatchObject({
    era: 'legacy',
    transport: 'http-sse',
    revisions: ['2024-11-05'],
    serverInfo: { name: 'by hand' },
    sessions: 'each event stream is a session',
  });
  await until(() => backend.open().length === 0, 'the stream to be closed');
});
