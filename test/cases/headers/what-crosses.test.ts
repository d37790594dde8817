import { afterEach, describe, expect, test } from 'vitest';
import { startSseBackend } from '../../http-sse/scripted.js';
import { CELLS, type Cell, type CellOptions, type Rig, startCell } from '../../support/cells.js';
import { startGateway } from '../../support/gateway.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';
import { CLIENT_INFO, legacy, modern, open, send } from '../../support/raw.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

async function startRig(cell: Cell, options?: CellOptions): Promise<Rig> {
  const rig = await startCell(cell, options);
  opened.push(rig);
  return rig;
}

/** Sends `tools/call` to a URL of the rig's route in the client's era; legacy clients open a session for each call. */
async function callAt(rig: Rig, suffix: string, headers: Record<string, string> = {}): Promise<Loose> {
  const url = rig.gateway.url() + suffix;
  if (rig.modernClient) return modern(url, 'tools/call', { name: 'echo' }, { headers });
  const session = await legacy(url, { headers });
  return session.request('tools/call', { name: 'echo' });
}

const lastCall = (rig: Rig) => rig.backend.received('tools/call').at(-1);
const queryOf = (url: string | undefined) => url?.split('?')[1];

describe.each(CELLS)('%s', (cell) => {
  test('headers of the client and the query of its URL reach the backend with every message', async () => {
    const rig = await startRig(cell);
    const sent = {
      'x-mcp-readonly': 'true',
      'X-API-Key': 'k',
      'accept-language': 'de',
      'user-agent': 'Client/1.0',
      referer: 'http://localhost/page',
      'x-request-id': 'r-1',
      baggage: 'a=1',
    };
    const { status } = await callAt(rig, '?read_only=true&read_only=x%20y', sent);
    expect(status).toBe(200);
    expect(lastCall(rig)?.headers).toMatchObject({
      'x-mcp-readonly': 'true',
      'x-api-key': 'k',
      'accept-language': 'de',
      'user-agent': 'Client/1.0',
      referer: 'http://localhost/page',
      'x-request-id': 'r-1',
      baggage: 'a=1',
    });
    for (const { url, headers, json } of rig.backend.requests) {
      // The era is found out before a client has come.
      if (json?.method === 'server/discover' || headers['x-api-key'] === undefined) continue;
      expect(queryOf(url)).toBe('read_only=true&read_only=x%20y');
    }
    const handshake = rig.modernBackend ? [] : rig.backend.received('initialize');
    expect(handshake.filter(({ headers }) => headers['x-api-key'] === 'k').length).toBe(
      rig.modernBackend ? 0 : 1,
    );
  });

  test('headers of the connection, the body, the protocol and the browser end at the gateway', async () => {
    const rig = await startRig(cell, { config: { listen: { trustedProxies: [] } } });
    const ends = {
      connection: 'keep-alive, X-Hop',
      'x-hop': 'of this connection',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic c2VjcmV0',
      te: 'trailers',
      cookie: 'session=secret',
      origin: 'http://localhost:1234',
      'sec-fetch-mode': 'cors',
      'content-language': 'de',
      'content-md5': 'x',
      'if-none-match': '"x"',
      range: 'bytes=0-1',
      'mcp-unknown': 'x',
      'last-event-id': '7',
      'x-real-ip': '10.9.9.9',
      'x-forwarded-user': 'admin',
      forwarded: 'for=10.0.0.1',
    };
    await callAt(rig, '', ends);
    const headers = lastCall(rig)?.headers ?? {};
    for (const name of Object.keys(ends)) if (name !== 'connection') expect(headers).not.toHaveProperty(name);
  });

  test('the way of the request is told anew, and a trusted proxy is believed', async () => {
    const claimed = {
      'x-forwarded-for': '10.1.1.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'mcp.example.com',
      'x-forwarded-user': 'ada',
      forwarded: 'for=10.1.1.1;proto=https',
      'x-real-ip': '10.1.1.1',
    };
    const bare = await startRig(cell, { config: { listen: { trustedProxies: [] } } });
    await callAt(bare, '', claimed);
    const host = new URL(bare.gateway.origin).host;
    expect(lastCall(bare)?.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': host,
    });
    expect(lastCall(bare)?.headers).not.toHaveProperty('x-forwarded-user');
    const behind = await startRig(cell, { config: { listen: { trustedProxies: ['127.0.0.1'] } } });
    await callAt(behind, '', claimed);
    expect(lastCall(behind)?.headers).toMatchObject({
      'x-forwarded-for': '10.1.1.1, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'mcp.example.com',
      'x-forwarded-user': 'ada',
      'x-real-ip': '10.1.1.1',
      forwarded: 'for=10.1.1.1;proto=https, for=127.0.0.1;proto=http',
    });
  });

  test('headers of the route, and parameters of its URL, replace those of the client', async () => {
    const backend = await (cell[1] === 'M' ? startModernBackend() : startLegacyBackend());
    const gateway = await startGateway({
      '/mcp': { backend: { url: `${backend.url}?mode=safe`, headers: { 'X-Mode': 'safe' } } },
    });
    opened.push(backend, gateway);
    const rig = { gateway, backend, modernClient: cell[0] === 'M' } as unknown as Rig;
    await callAt(rig, '?mode=open&extra=1&%6Dode=2', { 'x-mode': 'open', 'x-extra': '1' });
    expect(lastCall(rig)?.headers).toMatchObject({ 'x-mode': 'safe', 'x-extra': '1' });
    expect(queryOf(lastCall(rig)?.url)).toBe('mode=safe&extra=1');
  });

  test('backend.forward narrows what is forwarded', async () => {
    const sent = { 'x-one': '1', 'other-one': '1', 'user-agent': 'Client/1.0', traceparent: '00-1-1-01' };
    const listed = await startRig(cell, {
      route: { backend: { forward: { headers: ['X-*', 'user-agent'] } } },
    });
    await callAt(listed, '?q=1', sent);
    expect(lastCall(listed)?.headers).toMatchObject({ 'x-one': '1', 'user-agent': 'Client/1.0' });
    expect(lastCall(listed)?.headers).not.toHaveProperty('other-one');
    expect(lastCall(listed)?.headers).not.toHaveProperty('traceparent');
    expect(queryOf(lastCall(listed)?.url)).toBe('q=1');
    const none = await startRig(cell, { route: { backend: { forward: { headers: 'none', query: false } } } });
    await callAt(none, '?q=1', { ...sent, authorization: 'Bearer t' });
    for (const name of [...Object.keys(sent), 'x-forwarded-for', 'x-forwarded-host'])
      expect(lastCall(none)?.headers).not.toHaveProperty(name);
    expect(lastCall(none)?.headers).toMatchObject({ authorization: 'Bearer t' });
    expect(queryOf(lastCall(none)?.url)).toBeUndefined();
  });

  test('repeated lines of a header, and values with any byte, arrive as they are', async () => {
    const rig = await startRig(cell);
    const list = [
      ['X-Many', 'b'],
      ['x-many', 'a'],
      ['X-Latin', 'caf\xe9'],
    ] as const;
    if (rig.modernClient) {
      const { modernRequest } = await import('../../support/raw.js');
      const { headers, ...rest } = modernRequest('tools/call', { name: 'echo' });
      await send(rig.gateway.url(), {
        ...rest,
        headers: [...Object.entries(headers as Loose), ...list] as Loose,
      });
    } else {
      const session = await rig.session();
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } };
      await send(rig.gateway.url(), {
        headers: [...Object.entries(session.headers), ...list] as Loose,
        body,
      });
    }
    const raw = lastCall(rig)?.rawHeaders ?? [];
    const values = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'x-many');
    expect(values).toEqual(['b', 'a']);
    expect(lastCall(rig)?.headers['x-latin']).toBe('caf\xe9');
  });

  test('a redirect keeps the query of the client, and teaches no other client that', async () => {
    const rig = await startRig(cell, {
      script: {
        intercept: (exchange: Loose) => {
          const { url, res } = exchange;
          if (url.startsWith('/mcp/')) return false;
          res.writeHead(307, { location: url.replace('/mcp', '/mcp/') }).end();
          return true;
        },
      } as Loose,
    });
    await callAt(rig, '?token=of-one');
    expect(lastCall(rig)?.url).toMatch(/\/mcp\/\?token=of-one$/);
    await callAt(rig, '?token=of-two');
    expect(lastCall(rig)?.url).toMatch(/\/mcp\/\?token=of-two$/);
    await callAt(rig, '');
    expect(queryOf(lastCall(rig)?.url)).toBeUndefined();
  });
});

describe.each(['ML', 'MM'] as const)('%s: what another value got is never served', (cell) => {
  const tools = (name: string) => [{ name, inputSchema: { type: 'object' } }];

  test.each([
    ['a header', { 'x-tenant': 'a' }, '', { 'x-tenant': 'b' }, ''],
    ['the query', {}, '?tenant=a', {}, '?tenant=b'],
    ['the language', { 'accept-language': 'de' }, '', { 'accept-language': 'fr' }, ''],
  ])('that differs in %s', async (_, first, firstQuery, second, secondQuery) => {
    const seen = ({ headers, url }: Loose): string =>
      `${headers['x-tenant'] ?? headers['accept-language'] ?? ''}${queryOf(url) ?? ''}`;
    const rig = await startRig(cell, { route: { cache: { 'tools/list': '1h' } } });
    rig.on('tools/list', (step) => {
      const list = JSON.stringify({ tools: tools(`t-${seen(step)}`) });
      const hints = list.replace(/^\{/, '{"ttlMs":60000,"cacheScope":"public",');
      return rig.result(cell === 'MM' ? hints : list);
    });
    const listAt = async (query: string, headers: Loose) =>
      (await modern(rig.gateway.url() + query, 'tools/list', {}, { headers })).json.result;
    const a = await listAt(firstQuery, first);
    const b = await listAt(secondQuery, second);
    expect(a.tools[0].name).not.toBe(b.tools[0].name);
    expect(a.cacheScope).toBe('private');
    expect((await listAt(firstQuery, first)).tools[0].name).toBe(a.tools[0].name);
    expect(rig.backend.received('tools/list').length).toBe(2);
    if (cell === 'ML') {
      const ids = rig.backend.received('tools/list').map(({ headers }) => headers['mcp-session-id']);
      expect(new Set(ids).size).toBe(2);
    }
  });

  test('but shared where the difference changes no answer', async () => {
    const rig = await startRig(cell, {
      route: { cache: { 'tools/list': '1h' }, backend: { forward: { neutral: ['Accept-Language'] } } },
    });
    rig.on('tools/list', () => rig.result('{"ttlMs":60000,"cacheScope":"public","tools":[]}'));
    for (const n of ['1', '2']) {
      const headers = {
        'user-agent': `Client/${n}`,
        'x-request-id': n,
        traceparent: `00-${n}`,
        'accept-language': n,
        'cf-ray': n,
      };
      await modern(rig.gateway.url(), 'tools/list', {}, { headers });
    }
    expect(rig.backend.received('tools/list').length).toBe(1);
  });
});

test.each(['LL', 'LM'] as const)('%s: each request of a session has its own values', async (cell) => {
  const rig = await startRig(cell);
  const session = await rig.session();
  for (const tenant of ['a', 'b']) {
    await send(`${rig.gateway.url()}?t=${tenant}`, {
      headers: { ...session.headers, 'x-tenant': tenant },
      body: { jsonrpc: '2.0', id: tenant, method: 'tools/call', params: { name: 'echo' } },
    });
    expect(lastCall(rig)?.headers['x-tenant']).toBe(tenant);
    expect(queryOf(lastCall(rig)?.url)).toBe(`t=${tenant}`);
  }
  if (cell === 'LL') expect(rig.backend.received('initialize').length).toBe(1);
});

test('LL: the GET and the DELETE of a session carry headers and query too', async () => {
  const rig = await startRig('LL', { script: { capabilities: { tools: { listChanged: true } } } });
  const session = await legacy(`${rig.gateway.url()}?q=1`, { headers: { 'x-tenant': 'a' } });
  const stream = await session.listen();
  opened.push({ close: () => stream.abort() });
  const ofMethod = (method: string) =>
    rig.backend.requests.find((request) => request.method === method && request.headers['x-tenant'] === 'a');
  const get = await until(() => ofMethod('GET'));
  expect(queryOf(get.url)).toBe('q=1');
  await session.delete();
  const end = await until(() => ofMethod('DELETE'));
  expect(queryOf(end.url)).toBe('q=1');
});

test('ML: a parked call is not resumed with other values', async () => {
  const rig = await startRig('ML');
  rig.on('tools/call', async ({ stream, frame, session, json }: Loose) => {
    const events = stream();
    events.event({
      jsonrpc: '2.0',
      id: 's-1',
      method: 'elicitation/create',
      params: { message: 'ok?', requestedSchema: { type: 'object', properties: {} } },
    });
    void [frame, session, json];
    return undefined;
  });
  const options = { capabilities: { elicitation: {} }, headers: { 'x-tenant': 'a' } };
  const asked = (await modern(rig.gateway.url(), 'tools/call', { name: 'echo' }, options)).json.result;
  expect(asked.resultType).toBe('input_required');
  const [key] = Object.keys(asked.inputRequests);
  const retry = {
    name: 'echo',
    requestState: asked.requestState,
    inputResponses: { [key as string]: { action: 'decline' } },
  };
  const other = await modern(rig.gateway.url(), 'tools/call', retry, {
    ...options,
    headers: { 'x-tenant': 'b' },
  });
  expect([other.status, other.json.error.code]).toEqual([400, -32602]);
});

describe('HTTP+SSE', () => {
  test.each(['L', 'M'] as const)(
    'behind: the stream and the messages of a %s client carry both',
    async (era) => {
      const backend = await startSseBackend();
      const gateway = await startGateway({
        '/mcp': { backend: { url: backend.url, transport: 'http-sse' } },
      });
      opened.push(backend, gateway);
      const rig = { gateway, modernClient: era === 'M' } as unknown as Rig;
      await callAt(rig, '?read_only=true', { 'x-api-key': 'k' });
      const [stream] = backend.requests.filter(
        ({ method, headers }) => method === 'GET' && headers['x-api-key'] === 'k',
      );
      expect(queryOf(stream?.url)).toBe('read_only=true');
      const call = backend.received('tools/call').at(-1);
      expect(call?.headers['x-api-key']).toBe('k');
      expect(call?.url).toMatch(/[?&]read_only=true$/);
    },
  );

  test.each(['L', 'M'] as const)(
    'in front of an %s backend: those of the stream and of the message',
    async (era) => {
      const backend = await (era === 'M' ? startModernBackend() : startLegacyBackend());
      const gateway = await startGateway({ '/mcp': { backend: { url: backend.url }, legacySse: true } });
      opened.push(backend, gateway);
      const stream = await open(`${gateway.origin}/mcp/sse?read_only=true`, {
        headers: { accept: 'text/event-stream' },
      });
      opened.push({ close: () => stream.abort() });
      const place = (await stream.next()).data;
      const post = (body: Loose) =>
        send(gateway.origin + place, { headers: { 'x-api-key': 'k' }, body: { jsonrpc: '2.0', ...body } });
      const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: CLIENT_INFO };
      await post({ id: 1, method: 'initialize', params });
      await stream.find(({ json }) => json?.id === 1);
      await post({ method: 'notifications/initialized' });
      await post({ id: 2, method: 'tools/call', params: { name: 'echo' } });
      await stream.find(({ json }) => json?.id === 2);
      const call = backend.received('tools/call').at(-1);
      expect(queryOf(call?.url)).toBe('read_only=true');
      expect(call?.headers['x-api-key']).toBe('k');
    },
  );
});
