import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type BackendExchange,
  type ScriptedBackend,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { legacy, modern, type RawResponse } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

type Era = 'legacy' | 'modern';

/**
 * A backend that redirects where `location` gives one ('' for none in the answer; true: it is answered already), and
 * the gateway in front of its `/mcp`.
 */
async function start(
  era: Era,
  location: (exchange: BackendExchange) => string | true | undefined,
  { status = 307, path = '/mcp' } = {},
): Promise<{ backend: ScriptedBackend; gateway: TestGateway }> {
  const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
    intercept: (exchange) => {
      const to = location(exchange);
      if (to === undefined) return false;
      if (to !== true) exchange.sendText('over there', status, to === '' ? {} : { location: to });
      return true;
    },
  });
  await keep(backend);
  const url = new URL(path, backend.url).href;
  const gateway = await keep(startGateway({ '/mcp': { backend: { url, headers: { 'x-key': 'secret' } } } }));
  return { backend, gateway };
}

/** One call of each era of clients; both must come to the same. */
async function callBoth(gateway: TestGateway, headers: Record<string, string> = {}): Promise<RawResponse[]> {
  const params = { name: 'echo', arguments: { text: 'x'.repeat(100_000) } };
  const session = await legacy(gateway.url(), { headers });
  return [
    await modern(gateway.url(), 'tools/call', params, { headers }),
    await session.request('tools/call', params),
  ];
}

const paths = (backend: ScriptedBackend) => backend.requests.map(({ url }) => url);

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  describe.each([307, 308])('that answers with %i', (status) => {
    const targets: Record<string, (backend: { url: string }) => string> = {
      'a path': () => '/mcp/',
      'a full URL': ({ url }) => `${url}/`,
      'a relative path': () => 'mcp/',
      'a path with a query': () => '/other?tenant=1&x=%2F',
      'a URL without a scheme': ({ url }) => `//${new URL(url).host}/mcp/`,
      'a URL with a fragment': () => '/mcp/#top',
    };
    test.each(Object.keys(targets))(
      'to its own origin, as %s, is followed with method, body and headers',
      async (name) => {
        const target = targets[name] as (typeof targets)[string];
        const { backend, gateway } = await start(
          era,
          ({ url }) => (url === '/mcp' ? target(backend) : undefined),
          { status },
        );
        const answers = await callBoth(gateway, { authorization: 'Bearer t' });
        for (const answer of answers) {
          expect(answer.status).toBe(200);
          expect(answer.headers['location']).toBeUndefined();
          expect(answer.json.result.content[0].text).toHaveLength(100_011);
        }
        const final = new URL(target(backend), backend.url);
        const first = backend.requests.findIndex(({ url }) => url === final.pathname + final.search);
        expect(first).toBeGreaterThan(0);
        // The final path is remembered: nothing goes to the old one any more.
        const late = backend.requests
          .slice(first)
          .filter(({ url, method }) => url === '/mcp' && method === 'POST');
        expect(late.length).toBeLessThanOrEqual(1);
        for (const request of backend.requests
          .slice(first)
          .filter(({ json }) => json?.method === 'tools/call')) {
          expect(request).toMatchObject({
            method: 'POST',
            headers: { 'x-key': 'secret', authorization: 'Bearer t' },
          });
        }
      },
    );
  });

  test('that redirects twice is followed, also to the first path again', async () => {
    let asked = 0;
    const { backend, gateway } = await start(era, ({ url }) => {
      if (url === '/mcp') return asked++ === 0 ? '/a' : undefined;
      return url === '/a' ? '/b' : url === '/b' ? '/mcp' : undefined;
    });
    for (const answer of await callBoth(gateway)) expect(answer.status).toBe(200);
    expect(paths(backend).slice(0, 4)).toEqual(['/mcp', '/a', '/b', '/mcp']);
  });

  test('that redirects twice is followed from where the first redirect led', async () => {
    const { backend, gateway } = await start(era, ({ url }) => {
      if (url === '/mcp') return '/v2/mcp';
      return url === '/v2/mcp' ? 'mcp/' : undefined;
    });
    for (const answer of await callBoth(gateway)) expect(answer.status).toBe(200);
    expect(paths(backend).slice(0, 3)).toEqual(['/mcp', '/v2/mcp', '/v2/mcp/']);
  });

  test('that redirects in a circle is given up with a clear error', async () => {
    const { backend, gateway } = await start(era, ({ url }) => (url === '/mcp' ? '/mcp/' : '/mcp'));
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.status).toBe(502);
    expect(detailOf(gateway, answer)).toContain('backend.url');
    expect(backend.requests.length).toBeLessThan(30);
  });

  const refused: Record<string, string> = {
    'another host': 'http://10.0.0.5:8000/mcp/',
    'another port': 'http://127.0.0.1:1/mcp',
    'another scheme': 'https://127.0.0.1/mcp',
    'another name of the same machine': 'http://localhost/mcp',
    'no HTTP at all': 'file:///etc/passwd',
    'nothing that is a URL': 'http://',
  };
  test.each(Object.keys(refused))(
    'that redirects to %s is not followed, and gets no credentials there',
    async (name) => {
      const to = refused[name] as string;
      const { gateway } = await start(era, () => to);
      const [answer] = [
        await modern(gateway.url(), 'tools/list', {}, { headers: { authorization: 'Bearer t' } }),
      ];
      expect(answer?.status).toBe(502);
      expect(answer?.json.error.data).toEqual({ eragate: 'ERAGATE_RESPONSE_UNUSABLE' });
      expect(answer?.headers['location']).toBeUndefined();
      const { initialize } = await legacy(gateway.url());
      expect(initialize.status).toBe(502);
      expect(detailOf(gateway, initialize)).toContain('backend.url');
    },
  );

  test.each([300, 301, 302, 303, 304, 305, 399])(
    'that answers %i, which loses the body, is not followed',
    async (status) => {
      const { backend, gateway } = await start(era, () => '/mcp/', { status });
      const answer = await modern(gateway.url(), 'tools/list');
      expect(answer.status).toBe(502);
      expect(detailOf(gateway, answer)).toContain('backend.url');
      expect(paths(backend)).not.toContain('/mcp/');
    },
  );

  test('that redirects without a Location is an error', async () => {
    const { gateway } = await start(era, () => '');
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.status).toBe(502);
    expect(detailOf(gateway, answer)).toContain('backend.url');
  });

  test('whose redirect was for once, to a page for logging in, is asked at its own path again', async () => {
    let away = false;
    const { gateway } = await start(era, (exchange) => {
      if (!away) return undefined;
      if (exchange.url === '/mcp') return '/login';
      exchange.sendText('<form>', 404, { 'content-type': 'text/html' });
      return true;
    });
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    away = true;
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(502);
    away = false;
    // The era was doubted on account of the page, and is not asked for again at once.
    const { json } = await until(async () => {
      const answer = await modern(gateway.url(), 'tools/list');
      return answer.status === 200 ? answer : undefined;
    }, 'the backend to be found again');
    expect(json.result.tools).toHaveLength(1);
  });

  test('that moves back from the path that it redirected to is found again at once', async () => {
    let moved = true;
    const { backend, gateway } = await start(era, (exchange) => {
      if (moved) return exchange.url === '/mcp' ? '/new' : undefined;
      if (exchange.url === '/mcp') return undefined;
      exchange.sendText('Not Found', 404);
      return true;
    });
    for (const answer of await callBoth(gateway)) expect(answer.status).toBe(200);
    expect(paths(backend).at(-1)).toBe('/new');
    moved = false;
    for (const answer of await callBoth(gateway)) expect(answer.status).toBe(200);
    expect(paths(backend).at(-1)).toBe('/mcp');
  });

  test('with a query in its URL is asked with that query, and that of the client after it', async () => {
    const { backend, gateway } = await start(era, () => undefined, { path: '/mcp?key=a%20b&x' });
    expect((await modern(gateway.url('/mcp?other=1'), 'tools/list')).status).toBe(200);
    expect(new Set(paths(backend))).toEqual(new Set(['/mcp?key=a%20b&x', '/mcp?key=a%20b&x&other=1']));
  });
});

test('the stream and the end of a session follow redirects as well', async () => {
  const { backend, gateway } = await start('legacy', ({ url, method }) =>
    url === '/mcp' && method !== 'POST' ? '/streams' : undefined,
  );
  const session = await legacy(gateway.url());
  const stream = await session.listen();
  await until(() => backend.streams.length > 0, 'the stream of the session');
  backend.streams[0]?.stream.event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  expect((await stream.next()).json.method).toBe('notifications/tools/list_changed');
  await session.delete();
  await until(() => backend.sessions.size === 0, 'the end of the session');
});
