import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend } from '../../support/misbehave.js';
import {
  type HeaderList,
  legacy,
  modern,
  modernRequest,
  type RawResponse,
  send,
  wire,
} from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

let backend: ScriptedBackend;
beforeAll(async () => {
  backend = await startLegacyBackend();
});
afterAll(() => backend.close());

const LISTEN = {
  'on loopback, with nothing allowed': {},
  'on every address, with nothing allowed': { host: '0.0.0.0' },
  'on every address, with allowed origins and hosts': {
    host: '0.0.0.0',
    allowedOrigins: ['https://App.Example.com:443', 'http://intranet:8080', 'null'],
    allowedHosts: ['mcp.example.com'],
  },
  'on loopback, with allowed origins and hosts': {
    allowedOrigins: ['https://App.Example.com:443', 'http://intranet:8080', 'null'],
    allowedHosts: ['MCP.example.com', 'named.example.com:8443', '[2001:DB8::1]:8080', '192.0.2.7'],
  },
} as const;
type Setting = keyof typeof LISTEN;

/** Begins a gateway for the tests of one block. */
function gatewayWith(listen: Record<string, unknown>, overrides: Record<string, unknown> = {}) {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ '/mcp': backend.url }, { ...overrides, listen });
  });
  afterAll(() => gateway.close());
  return {
    url: (path?: string) => gateway.url(path),
    refusals: () => gateway.logs.filter(({ msg }) => msg === 'request refused'),
  };
}

function list(headers: HeaderList, url: string): Promise<RawResponse> {
  const request = modernRequest('tools/list');
  const own = Object.entries(request.headers as Record<string, string | undefined>);
  const given = Array.isArray(headers) ? headers : Object.entries(headers);
  return send(url, { ...request, headers: [...own, ...given] as [string, string][] });
}

function expectForbidden(answer: RawResponse, key: string): void {
  expect(answer.status).toBe(403);
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
  expect(answer.json.error.message).toContain(key);
}

const OWN_PAGES = [
  'http://localhost',
  'http://localhost:6274',
  'https://localhost:3000',
  'HTTP://LOCALHOST:3000',
  'http://127.0.0.1:8080',
  'http://127.8.9.10',
  'http://[::1]:5173',
  'http://[::1]',
  'http://app.localhost:3000',
];
const STRANGERS = [
  'https://evil.example.com',
  'http://localhost.evil.example.com',
  'http://evil.example.com:80',
  'http://127.0.0.1.evil.example.com',
  'http://notlocalhost',
  'http://[2001:db8::1]',
  'http://[::2]:8080',
  'http://128.0.0.1',
  'http://0.0.0.0:8080',
  'ftp://localhost',
  'file://localhost',
  'chrome-extension://abcdefgh',
  'localhost',
  'http://',
  'http://localhost, https://evil.example.com',
  '*',
  '',
];
const ALLOWED = [
  'https://app.example.com',
  'HTTPS://APP.example.com',
  'http://intranet:8080',
  'null',
  'NULL',
];
const NEARLY_ALLOWED = [
  'http://app.example.com',
  'https://app.example.com:8443',
  'https://app.example.com.evil.com',
  'https://sub.app.example.com',
  'http://intranet',
  'http://intranet:80800',
];

describe.each(Object.keys(LISTEN) as Setting[])('a gateway %s', (setting) => {
  const gateway = gatewayWith(LISTEN[setting]);
  const allows = 'allowedOrigins' in LISTEN[setting];

  test('serves a request without Origin, which comes from no page', async () => {
    expect((await list({}, gateway.url())).status).toBe(200);
  });

  test.each(OWN_PAGES)('serves pages of this machine: %s', async (origin) => {
    expect((await list({ origin }, gateway.url())).status).toBe(200);
  });

  test.each([...STRANGERS, ...NEARLY_ALLOWED])('refuses pages of strangers: "%s"', async (origin) => {
    const before = backend.requests.length;
    expectForbidden(await list({ origin }, gateway.url()), 'listen.allowedOrigins');
    expect(backend.requests).toHaveLength(before);
    expect(gateway.refusals().at(-1).reason).toContain('listen.allowedOrigins');
  });

  test.each(ALLOWED)(`${allows ? 'serves' : 'refuses'} the origin %s`, async (origin) => {
    const answer = await list({ origin }, gateway.url());
    if (allows) expect(answer.status).toBe(200);
    else expectForbidden(answer, 'listen.allowedOrigins');
  });

  test.each(['GET', 'DELETE', 'OPTIONS', 'PUT'])(
    'refuses strangers whatever the method: %s',
    async (method) => {
      const headers = { origin: 'https://evil.example.com', 'access-control-request-method': 'POST' };
      const answer = await send(gateway.url(), { method, headers });
      expectForbidden(answer, 'listen.allowedOrigins');
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  test('refuses a page of this machine that says so twice, the second time otherwise', async () => {
    const headers: HeaderList = [
      ['Origin', 'http://localhost'],
      ['Origin', 'https://evil.example.com'],
    ];
    expectForbidden(await list(headers, gateway.url()), 'listen.allowedOrigins');
  });

  test('refuses legacy clients in the same way', async () => {
    const { initialize } = await legacy(gateway.url(), { headers: { origin: 'https://evil.example.com' } });
    expectForbidden(initialize, 'listen.allowedOrigins');
  });

  test('guards the paths that are no routes too', async () => {
    for (const path of ['/healthz', '/nothing']) {
      const answer = await send(gateway.url(path), { headers: { origin: 'https://evil.example.com' } });
      expect(answer.status).toBe(403);
    }
  });
});

const LOOPBACK_HOSTS = [
  'localhost',
  'LOCALHOST:8080',
  'localhost:1',
  '127.0.0.1',
  '127.0.0.1:65535',
  '127.1.2.3:80',
  '[::1]',
  '[::1]:8080',
  'app.localhost',
  'app.localhost:8080',
];
const STRANGE_HOSTS = [
  'evil.example.com',
  'evil.example.com:8080',
  'localhost.evil.example.com',
  '127.0.0.1.nip.io:8080',
  '[::2]:8080',
  '[2001:db8::2]',
  '128.0.0.1',
  'localhost@evil.example.com',
  'evil.example.com:80@localhost',
];
const ALLOWED_HOSTS = [
  'mcp.example.com',
  'mcp.example.com:443',
  'MCP.Example.COM',
  'named.example.com:8443',
  '[2001:db8::1]:8080',
  '192.0.2.7:8080',
];

describe('on loopback, which a page can reach by any name that it owns,', () => {
  const closed = gatewayWith({});
  const open = gatewayWith(LISTEN['on loopback, with allowed origins and hosts']);

  test.each(LOOPBACK_HOSTS)('the Host "%s" is served', async (host) => {
    expect((await list({ host }, closed.url())).status).toBe(200);
    expect((await list({ host }, open.url())).status).toBe(200);
  });

  test.each(STRANGE_HOSTS)('the Host "%s" is refused, and the log names the key to set', async (host) => {
    for (const gateway of [closed, open]) {
      expectForbidden(await list({ host }, gateway.url()), 'listen.allowedHosts');
      expect(gateway.refusals().at(-1).reason).toContain('listen.allowedHosts');
    }
  });

  test.each(ALLOWED_HOSTS)('the Host "%s" is refused until it is allowed', async (host) => {
    expectForbidden(await list({ host }, closed.url()), 'listen.allowedHosts');
    expect((await list({ host }, open.url())).status).toBe(200);
  });

  test('a Host that is allowed with its port is not allowed with another one', async () => {
    expectForbidden(await list({ host: 'named.example.com:9' }, open.url()), 'listen.allowedHosts');
    expectForbidden(await list({ host: 'named.example.com' }, open.url()), 'listen.allowedHosts');
  });

  test('a request of HTTP/1.0 without a Host is refused', async () => {
    expect(await wire(closed.url(), 'GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 403 /);
  });

  test('an allowed origin does not make up for a strange Host', async () => {
    const headers = { host: 'evil.example.com', origin: 'http://localhost' };
    expectForbidden(await list(headers, closed.url()), 'listen.allowedHosts');
  });

  test('X-Forwarded-Host says nothing about the Host', async () => {
    const forged = { host: 'evil.example.com', 'x-forwarded-host': 'localhost', forwarded: 'host=localhost' };
    expectForbidden(await list(forged, closed.url()), 'listen.allowedHosts');
    const proxied = { host: 'localhost', 'x-forwarded-host': 'mcp.example.com' };
    expect((await list(proxied, closed.url())).status).toBe(200);
  });
});

describe('behind a reverse proxy, on every address,', () => {
  const gateway = gatewayWith({ host: '0.0.0.0' });
  test.each([...ALLOWED_HOSTS, 'internal-balancer', '10.0.0.4:8080'])(
    'any Host is served: %s',
    async (host) => {
      expect((await modern(gateway.url(), 'tools/list', {}, { headers: { host } })).status).toBe(200);
    },
  );
});

describe('a gateway with a public URL', () => {
  const gateway = gatewayWith({}, { publicUrl: 'https://MCP.example.com/base' });
  test('serves its own pages and its own name, and no others', async () => {
    const own = { host: 'mcp.example.com', origin: 'https://mcp.example.com' };
    expect((await list(own, gateway.url())).status).toBe(200);
    expectForbidden(
      await list({ ...own, origin: 'http://mcp.example.com' }, gateway.url()),
      'allowedOrigins',
    );
    expectForbidden(await list({ host: 'example.com' }, gateway.url()), 'allowedHosts');
  });
});

test('neither Origin nor Host of a client reaches the backend, nor do its cookies and what its browser adds', async () => {
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const before = backend.requests.length;
    const headers = {
      host: 'localhost:1234',
      origin: 'http://localhost:5173',
      cookie: 'secret=1',
      'sec-fetch-mode': 'cors',
      'sec-fetch-site': 'same-site',
      'last-event-id': '9',
    };
    expect((await list(headers, gateway.url())).status).toBe(200);
    const session = await legacy(gateway.url(), { headers });
    expect((await session.request('tools/list')).status).toBe(200);
    const seen = backend.requests.slice(before);
    expect(seen.length).toBeGreaterThan(4);
    for (const request of seen) {
      expect(request.headers.host).toBe(new URL(backend.url).host);
      const leaked = Object.keys(request.headers).filter((name) => name in headers && name !== 'host');
      expect(leaked).toEqual([]);
    }
  } finally {
    await gateway.close();
  }
});
