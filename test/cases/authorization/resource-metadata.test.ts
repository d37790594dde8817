import type { ServerResponse } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { type Backend, type BackendExchange, startBackend } from '../../support/backend.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import type { Loose } from '../../support/net.js';
import { type HeaderList, modern, send } from '../../support/raw.js';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const ISSUER = 'https://login.example.com';

const open: { close(): unknown }[] = [];
const keep = <T extends { close(): unknown }>(thing: T): T => {
  open.push(thing);
  return thing;
};
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

interface Guarded {
  /** Path -> document; a function is given the origin by which the backend knows itself. */
  documents?: Record<string, Loose>;
  /** The challenge; undefined for none at all. */
  challenge?: (origin: string) => string;
  status?: 401 | 403;
}

/** A server that lets nobody in, and tells at some paths whom it trusts. */
async function guarded({ documents = {}, challenge, status = 401 }: Guarded): Promise<Backend> {
  return keep(
    await startBackend((exchange) => {
      const origin = `http://127.0.0.1:${backendPort()}`;
      const [path = ''] = exchange.url.split('?');
      if (exchange.method === 'GET' && path in documents) {
        const document = documents[exchange.url] ?? documents[path];
        const body = typeof document === 'function' ? document(origin) : document;
        if (typeof body === 'number') exchange.sendText('', body);
        else exchange.sendJson(body);
      } else if (path.startsWith('/.well-known')) exchange.sendText('Not Found', 404);
      else {
        exchange.sendJson(
          { error: 'invalid_token' },
          status,
          challenge ? { 'www-authenticate': challenge(origin) } : {},
        );
      }
    }),
  );
  function backendPort(): number {
    return (open.find((thing) => 'port' in thing) as unknown as Backend).port;
  }
}

const gatewayTo = async (routes: Parameters<typeof startGateway>[0], overrides = {}): Promise<TestGateway> =>
  keep(await startGateway(routes, overrides));

const get = (gateway: TestGateway, path: string, headers: HeaderList = {}) =>
  send(`${gateway.origin}${path}`, { method: 'GET', headers });

const ofBackend = (path: string) => (origin: string) => ({
  resource: `${origin}${path}`,
  authorization_servers: [ISSUER],
  scopes_supported: ['mcp:read'],
});

const pack = (res: ServerResponse, encoding: string, body: Buffer) =>
  void res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(body);

describe('the metadata of a route', () => {
  test('is what the backend says of itself, in the name by which the client knows it', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/orders': backend.url });
    const answer = await get(gateway, `${WELL_KNOWN}/orders`);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json).toEqual({
      resource: gateway.url('/orders'),
      authorization_servers: [ISSUER],
      scopes_supported: ['mcp:read'],
    });
  });

  test('ends with a slash where the client asks with one', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    expect((await get(gateway, `${WELL_KNOWN}/mcp/`)).json.resource).toBe(gateway.url('/mcp/'));
  });

  test('names the public URL where there is one, whatever the request says', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/mcp': backend.url }, { publicUrl: 'https://mcp.example.com/' });
    const headers = { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'other.example.com' };
    expect((await get(gateway, `${WELL_KNOWN}/mcp`, headers)).json.resource).toBe(
      'https://mcp.example.com/mcp',
    );
  });

  test('is found behind a public URL with a path, which may have been taken off', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/mcp': backend.url }, { publicUrl: 'https://example.com/tools' });
    for (const path of ['/mcp', '/tools/mcp']) {
      expect((await get(gateway, `${WELL_KNOWN}${path}`)).json.resource).toBe(
        'https://example.com/tools/mcp',
      );
    }
  });

  test('is served at the root for the only route, and for none of several', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const one = await gatewayTo({ '/mcp': backend.url });
    expect((await get(one, WELL_KNOWN)).json.resource).toBe(one.url('/mcp'));
    const two = await gatewayTo({ '/a': backend.url, '/b': backend.url });
    expect((await get(two, WELL_KNOWN)).status).toBe(404);
    expect((await get(two, `${WELL_KNOWN}/b`)).json.resource).toBe(two.url('/b'));
  });

  test('is looked for at the root of the backend only when its own path has none', async () => {
    const backend = await guarded({ documents: { [WELL_KNOWN]: ofBackend('') } });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json.resource).toBe(gateway.url('/mcp'));
    expect(backend.requests.filter(({ url }) => url.startsWith(WELL_KNOWN)).map(({ url }) => url)).toEqual([
      `${WELL_KNOWN}/mcp`,
      WELL_KNOWN,
    ]);
  });

  test('keeps every other byte, but for signed claims that contradict it', async () => {
    const text = (origin: string) =>
      `{ "resource" : "${origin}/mcp", "n": 12345678901234567890, "signed_metadata": "e30.e30.", "x": 1.0 }`;
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: text } });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    const { text: body } = await get(gateway, `${WELL_KNOWN}/mcp`);
    expect(body).toContain('"n": 12345678901234567890');
    expect(body).toContain('"x": 1.0');
    expect(body).not.toContain('signed_metadata');
  });

  test('of something else than the backend goes on as it is, so that the client can refuse it', async () => {
    const foreign = {
      resource: 'https://evil.example.com/mcp',
      authorization_servers: [ISSUER],
      signed_metadata: 'a',
    };
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: foreign } });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json).toEqual(foreign);
  });

  test('of a backend that is configured with the public URL goes on as it is', async () => {
    const own = {
      resource: 'https://mcp.example.com/mcp',
      authorization_servers: [ISSUER],
      signed_metadata: 'a',
    };
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: own } });
    const gateway = await gatewayTo({ '/mcp': backend.url }, { publicUrl: 'https://mcp.example.com' });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json).toEqual(own);
  });

  test('is asked for by the name that the backend wants, and with the fixed headers of the route', async () => {
    const backend = await guarded({
      documents: {
        [`${WELL_KNOWN}/mcp`]: { resource: 'http://inner.example.com/mcp', authorization_servers: [ISSUER] },
      },
    });
    const gateway = await gatewayTo({
      '/mcp': { backend: { url: backend.url, hostHeader: 'inner.example.com', headers: { 'x-key': 'k' } } },
    });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json.resource).toBe(gateway.url('/mcp'));
    const asked = backend.requests.find(({ url }) => url.startsWith(WELL_KNOWN));
    expect(asked?.headers).toMatchObject({ host: 'inner.example.com', 'x-key': 'k' });
    expect(asked?.headers.authorization).toBeUndefined();
  });
});

test('what is to be read can be asked for by HEAD as well, and by nothing that would change it', async () => {
  const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
  const gateway = await gatewayTo({ '/mcp': backend.url });
  for (const path of [WELL_KNOWN, `${WELL_KNOWN}/mcp`, `${WELL_KNOWN}/mcp/`, '/healthz']) {
    const { bytes, status } = await get(gateway, path);
    expect(status).toBe(200);
    const head = await send(`${gateway.origin}${path}`, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers['content-length']).toBe(String(bytes.length));
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const body = method === 'DELETE' ? undefined : 'a=b';
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const refused = await send(`${gateway.origin}${path}`, { method, body, headers });
      expect(refused.status, method).toBe(405);
      expect(refused.headers.allow).toBe('GET, HEAD, OPTIONS');
      expect(refused.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
    }
  }
});

test('many who ask at once are answered without asking the backend for each', async () => {
  const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
  const gateway = await gatewayTo({ '/mcp': backend.url });
  const before = backend.requests.length;
  const paths = Array.from({ length: 20 }, (_, i) => `${WELL_KNOWN}/mcp${i % 2 === 0 ? '' : '/'}`);
  const answers = await Promise.all(paths.map((path) => get(gateway, path)));
  expect(new Set(answers.map(({ json }) => json.resource))).toEqual(
    new Set([gateway.url('/mcp'), gateway.url('/mcp/')]),
  );
  const asked = backend.requests.slice(before).filter(({ url }) => url.startsWith(WELL_KNOWN));
  expect(asked.length).toBeLessThan(paths.length);
});

describe('a route has no metadata', () => {
  test.each<[string, Guarded['documents']]>([
    ['where the backend has none', {}],
    ['where what it has is no JSON', { [`${WELL_KNOWN}/mcp`]: 'hello' }],
    ['where what it has is no object', { [`${WELL_KNOWN}/mcp`]: '[1]' }],
    ['where it names no resource', { [`${WELL_KNOWN}/mcp`]: { authorization_servers: [ISSUER] } }],
    ['where its resource is no text', { [`${WELL_KNOWN}/mcp`]: { resource: 7 } }],
    ['where it wants a credential for it', { [`${WELL_KNOWN}/mcp`]: 401, [WELL_KNOWN]: 403 }],
    ['where it points somewhere else', { [`${WELL_KNOWN}/mcp`]: 302 }],
  ])('%s', async (_why, documents) => {
    const backend = await guarded({ documents: documents ?? {} });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    const answer = await get(gateway, `${WELL_KNOWN}/mcp`);
    expect(answer.status).toBe(404);
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
  });

  test('where no credential of a client goes on', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, authorization: 'drop' } } });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).status).toBe(404);
    expect(backend.requests.some(({ url }) => url.startsWith(WELL_KNOWN))).toBe(false);
  });

  test('of a path that is no route', async () => {
    const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
    const gateway = await gatewayTo({ '/mcp': backend.url });
    expect((await get(gateway, `${WELL_KNOWN}/other`)).status).toBe(404);
  });
});

test.each<[string, Guarded['documents']]>([
  ['fails', { [`${WELL_KNOWN}/mcp`]: 500 }],
  ['is asked too often', { [`${WELL_KNOWN}/mcp`]: 429 }],
  ['sends without end', { [`${WELL_KNOWN}/mcp`]: { resource: 'x'.repeat(300 * 1024) } }],
])('a backend that %s is not taken for one without metadata', async (_how, documents) => {
  const backend = await guarded({ documents: documents ?? {} });
  const gateway = await gatewayTo({ '/mcp': backend.url });
  expect((await get(gateway, `${WELL_KNOWN}/mcp`)).status).toBe(502);
});

test.each<[string, (exchange: BackendExchange, document: string) => void]>([
  ['compressed with gzip', ({ res }, text) => pack(res, 'gzip', gzipSync(text))],
  ['compressed with br', ({ res }, text) => pack(res, 'br', brotliCompressSync(text))],
  [
    'at the same path with a slash',
    ({ url, res, sendJson }, text) =>
      url.endsWith('/') ? sendJson(text) : void res.writeHead(301, { location: `${url}/` }).end(),
  ],
  [
    'at another path of the backend, by some detours',
    ({ url, res, sendJson }, text) =>
      url.endsWith('x')
        ? sendJson(text)
        : void res.writeHead(307, { location: url.endsWith('/a') ? 'x' : `${WELL_KNOWN}/a` }).end(),
  ],
])('metadata is found %s', async (_where, answer) => {
  const backend = keep(
    await startBackend((exchange) => {
      if (!exchange.url.startsWith(WELL_KNOWN)) exchange.sendText('no', 404);
      else answer(exchange, JSON.stringify(ofBackend('/mcp')(`http://127.0.0.1:${backend.port}`)));
    }),
  );
  const gateway = await gatewayTo({ '/mcp': backend.url });
  const { status, json, headers } = await get(gateway, `${WELL_KNOWN}/mcp`);
  expect([status, json?.resource]).toEqual([200, gateway.url('/mcp')]);
  expect(headers['content-encoding']).toBeUndefined();
});

test('a redirect of the metadata to another origin is not followed, nor one in circles', async () => {
  const other = keep(await startBackend(({ sendJson }) => sendJson(ofBackend('/mcp')('http://127.0.0.1'))));
  for (const location of [`${new URL(other.url).origin}${WELL_KNOWN}/mcp`, `${WELL_KNOWN}/mcp`, 'http://']) {
    const backend = keep(
      await startBackend(({ url, res, sendText }) => {
        if (url.startsWith(WELL_KNOWN)) res.writeHead(302, { location }).end();
        else sendText('no', 404);
      }),
    );
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'legacy' } } });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).status).toBe(404);
  }
  expect(other.requests).toEqual([]);
});

test('a backend that is down is not taken for one without metadata', async () => {
  const backend = await guarded({});
  const gateway = await gatewayTo({ '/mcp': backend.url });
  await backend.stop();
  expect((await get(gateway, `${WELL_KNOWN}/mcp`)).status).toBe(502);
});

describe('a challenge', () => {
  const CUSTOM = '/custom/metadata/location.json?v=1';
  const at = (place: string) => (origin: string) =>
    `Bearer error="invalid_token", resource_metadata="${origin}${place}", scope="mcp:read"`;

  test.each(['legacy', 'modern'] as const)(
    'reaches a %s client with the metadata where the client finds it',
    async (era) => {
      const backend = await guarded({
        challenge: at(CUSTOM),
        documents: { [CUSTOM.replace(/\?.*/, '')]: ofBackend('/mcp') },
      });
      const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era } } });
      const answer =
        era === 'modern'
          ? await modern(gateway.url(), 'tools/list')
          : await send(gateway.url(), {
              method: 'POST',
              headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
              body: JSON.stringify({
                jsonrpc: '2.0',
                id: 1,
                method: 'initialize',
                params: {
                  protocolVersion: '2025-11-25',
                  capabilities: {},
                  clientInfo: { name: 'c', version: '1' },
                },
              }),
            });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe(
        `Bearer error="invalid_token", resource_metadata="${gateway.origin}${WELL_KNOWN}/mcp", scope="mcp:read"`,
      );
      expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json.resource).toBe(gateway.url('/mcp'));
      expect(backend.requests.at(-1)?.url).toBe(CUSTOM);
    },
  );

  test('names the public URL and the slash that the client has typed', async () => {
    const backend = await guarded({ challenge: at(`${WELL_KNOWN}/mcp`) });
    const gateway = await gatewayTo(
      { '/mcp': { backend: { url: backend.url, era: 'modern' } } },
      { publicUrl: 'https://example.com/tools' },
    );
    const plain = await modern(gateway.url(), 'tools/list');
    expect(plain.headers['www-authenticate']).toContain(`"https://example.com${WELL_KNOWN}/tools/mcp"`);
    const slash = await modern(gateway.url('/mcp/'), 'tools/list');
    expect(slash.headers['www-authenticate']).toContain(`"https://example.com${WELL_KNOWN}/tools/mcp/"`);
  });

  test('of a refused scope keeps its status and words', async () => {
    const backend = await guarded({ challenge: at(`${WELL_KNOWN}/mcp`), status: 403 });
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'modern' } } });
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.status).toBe(403);
    expect(answer.headers['www-authenticate']).toContain('scope="mcp:read"');
    expect(answer.headers['www-authenticate']).not.toContain(String(backend.port));
  });

  test('that points to another server is left alone, and that server is not asked', async () => {
    const elsewhere = 'https://metadata.example.com/prm';
    const backend = await guarded({ challenge: () => `Bearer resource_metadata="${elsewhere}"` });
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'modern' } } });
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.headers['www-authenticate']).toBe(`Bearer resource_metadata="${elsewhere}"`);
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).status).toBe(404);
  });

  test.each([
    ['another name for this machine', (port: number) => `http://localhost:${port}`],
    ['another address of this machine', (port: number) => `http://[::1]:${port}`],
    ['the name of a container', () => 'http://orders:8000'],
    ['a name of a cluster', () => 'https://orders.shop.svc.cluster.local'],
    ['a name of a private network', () => 'http://orders.corp.internal:8000'],
    ['an address of a private network', () => 'http://10.0.0.9:8000'],
  ])('of a server that knows itself by %s names none that a client could not reach', async (_what, inner) => {
    let name = '';
    const backend = await guarded({
      challenge: () => `Bearer resource_metadata="${name}${WELL_KNOWN}/mcp", scope="mcp:read"`,
      documents: { [`${WELL_KNOWN}/mcp`]: () => ofBackend('/mcp')(name) },
    });
    name = inner(backend.port);
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'modern' } } });
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.headers['www-authenticate']).toBe(
      `Bearer resource_metadata="${gateway.origin}${WELL_KNOWN}/mcp", scope="mcp:read"`,
    );
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json.resource).toBe(gateway.url('/mcp'));
  });

  test.each(['http://127.0.0.1:1', 'http://orders:8000/prm', 'https://metadata.example.com', 'ftp://orders'])(
    'that points to %s, which may be another server, is left alone',
    async (elsewhere) => {
      const place = elsewhere.endsWith('/prm') ? elsewhere : `${elsewhere}${WELL_KNOWN}/mcp`;
      const backend = await guarded({ challenge: () => `Bearer resource_metadata="${place}"` });
      const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'modern' } } });
      const answer = await modern(gateway.url(), 'tools/list');
      expect(answer.headers['www-authenticate']).toBe(`Bearer resource_metadata="${place}"`);
    },
  );

  test('is asked for by a process that has not seen any, where the usual places have nothing', async () => {
    const backend = await guarded({
      challenge: at('/custom.json'),
      documents: { '/custom.json': ofBackend('/mcp') },
    });
    const gateway = await gatewayTo({ '/mcp': { backend: { url: backend.url, era: 'modern' } } });
    expect((await get(gateway, `${WELL_KNOWN}/mcp`)).json.resource).toBe(gateway.url('/mcp'));
  });
});

test('a request that names no host, or none that can be, is not answered with one', async () => {
  const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
  const gateway = await gatewayTo({ '/mcp': backend.url }, { listen: { host: '0.0.0.0' } });
  const answer = await get(gateway, `${WELL_KNOWN}/mcp`, { host: 'a b' });
  expect(answer.status).toBe(400);
});

test('a browser page that may call may read the metadata', async () => {
  const backend = await guarded({ documents: { [`${WELL_KNOWN}/mcp`]: ofBackend('/mcp') } });
  const gateway = await gatewayTo(
    { '/mcp': backend.url },
    { listen: { allowedOrigins: ['https://app.example.com'] } },
  );
  const answer = await get(gateway, `${WELL_KNOWN}/mcp`, { origin: 'https://app.example.com' });
  expect(answer.headers['access-control-allow-origin']).toBe('https://app.example.com');
  expect((await get(gateway, `${WELL_KNOWN}/mcp`, { origin: 'https://evil.example.com' })).status).toBe(403);
});

describe('a metadata URL that a challenge names', () => {
  /** Each begins at the backend, and leads elsewhere when it is taken apart and put together wrongly. */
  const MISLEADING: Record<string, (origin: string, elsewhere: string) => string> = {
    'with a path that looks like a host': (origin, elsewhere) => `${origin}//${elsewhere}/x`,
    'with backslashes for slashes': (origin, elsewhere) => `${origin}\\\\${elsewhere}/x`,
    'with a slash and a backslash': (origin, elsewhere) => `${origin}/\\${elsewhere}/x`,
    'with three slashes': (origin, elsewhere) => `${origin}///${elsewhere}/x`,
    'with dots between the slashes': (origin, elsewhere) => `${origin}/.//${elsewhere}/x`,
    'below the well-known path': (origin, elsewhere) => `${origin}${WELL_KNOWN}/../..//${elsewhere}/x`,
    'without a scheme': (_origin, elsewhere) => `//${elsewhere}/x`,
    'with the backend as user name': (origin, elsewhere) => `${origin}@${elsewhere}/x`,
    'of another port': (_origin, elsewhere) => `http://${elsewhere}/x`,
    'at a private name': (_origin, elsewhere) => `http://internal:${elsewhere.split(':')[1]}${WELL_KNOWN}`,
  };

  test.each(Object.entries(MISLEADING))('%s is not asked of anyone but the backend', async (_what, urlOf) => {
    let elsewhere = '';
    const backend = await guarded({
      challenge: (origin) =>
        `Bearer resource_metadata="${urlOf(origin, elsewhere).replaceAll('\\', '\\\\')}"`,
    });
    const stranger = keep(
      await startBackend(({ sendJson }) =>
        sendJson({ resource: 'http://stranger', secret: 'of the stranger' }),
      ),
    );
    elsewhere = `127.0.0.1:${stranger.port}`;
    const gateway = await gatewayTo({
      '/mcp': {
        backend: { url: backend.url, headers: { 'X-Route-Key': 'of the route' }, authorization: 'forward' },
      },
    });
    const refused = await modern(gateway.url(), 'tools/list');
    expect(refused.status).toBe(401);
    const document = await get(gateway, `${WELL_KNOWN}/mcp`);
    expect(document.text).not.toContain('of the stranger');
    expect(stranger.requests).toEqual([]);
  });

  test('that redirects to another origin is not followed', async () => {
    let elsewhere = '';
    const stranger = keep(
      await startBackend(({ sendJson }) =>
        sendJson({ resource: 'http://stranger', secret: 'of the stranger' }),
      ),
    );
    for (const location of [`http://127.0.0.1:${stranger.port}/x`, `//127.0.0.1:${stranger.port}/x`]) {
      elsewhere = location;
      const backend = keep(
        await startBackend(({ res, method }) => {
          if (method === 'GET') res.writeHead(302, { location: elsewhere }).end();
          else res.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
        }),
      );
      const gateway = await gatewayTo({
        '/mcp': { backend: { url: backend.url, headers: { 'X-Route-Key': 'k' } } },
      });
      expect((await get(gateway, `${WELL_KNOWN}/mcp`)).text).not.toContain('of the stranger');
    }
    expect(stranger.requests).toEqual([]);
  });
});
