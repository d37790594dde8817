import { afterEach, describe, expect, test } from 'vitest';
import { CELLS, type Cell } from '../support/cells.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { type LegacySession, legacy, modern, type RawResponse } from '../support/raw.js';
import {
  heardBy,
  type Listener,
  listen,
  listenLegacy,
  Opened,
  startTelling,
  type TellingBackend,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

const opened = new Opened();
afterEach(() => opened.closeAll());

const PRINCIPALS = ['alice', 'bob', undefined] as const;
type Who = (typeof PRINCIPALS)[number];
const A = 'file:///a';
const LISTS: Record<string, [member: string, params: Loose]> = {
  'tools/list': ['tools', {}],
  'prompts/list': ['prompts', {}],
  'resources/list': ['resources', {}],
  'resources/templates/list': ['resourceTemplates', {}],
  'resources/read': ['contents', { uri: A }],
};

const headersOf = (who: Who) => (who === undefined ? {} : { authorization: `Bearer ${who}` });
const nameIn = ({ headers }: Loose) => /^Bearer (\w+)/.exec(headers.authorization ?? '')?.[1] ?? 'nobody';

/** A backend whose lists are its caller's own, and which says that they are everybody's. */
async function startPersonal(cell: Cell, route: Loose = {}) {
  const era = cell[1] === 'M' ? 'modern' : 'legacy';
  const hints = era === 'modern' ? { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' } : {};
  const on = Object.fromEntries(
    Object.entries(LISTS).map(([method, [member]]) => [
      method,
      (step: Loose) => {
        const name = nameIn(step);
        const item = {
          name,
          uri: `${A}/${name}`,
          uriTemplate: name,
          text: name,
          inputSchema: { type: 'object' },
        };
        return { result: { ...hints, [member]: [item] } };
      },
    ]),
  );
  const owners = new Map<string | undefined, string>();
  const feeds: { owner: string; stream: Loose }[] = [];
  const backend: TellingBackend = opened.add(
    await startTelling[era]({
      on,
      intercept: (exchange: Loose) => {
        if (exchange.method === 'GET') {
          const session = exchange.headers['mcp-session-id'];
          owners.set(session, nameIn(exchange));
          feeds.push({ owner: nameIn(exchange), stream: exchange.stream() });
          return true;
        }
        return false;
      },
    }),
  );
  const { backend: more, ...rest } = route;
  const gateway = opened.add(
    await startGateway({
      '/mcp': {
        backend: { url: backend.url, ...more },
        cache: { 'tools/list': '60s', 'resources/read': '60s', staleIfError: '60s' },
        ...rest,
      },
    }),
  );
  const sessions = new Map<Who, Promise<LegacySession>>();
  const sessionOf = (who: Who) => {
    const session = sessions.get(who) ?? legacy(gateway.url(), { headers: headersOf(who) });
    sessions.set(who, session);
    return session;
  };
  return {
    backend,
    gateway,
    feeds,
    sessionOf,
    async request(who: Who, method: string): Promise<RawResponse> {
      const [, params] = LISTS[method] as [string, Loose];
      if (cell[0] === 'M') return modern(gateway.url(), method, params, { headers: headersOf(who) });
      return (await sessionOf(who)).request(method, params);
    },
    async listen(who: Who): Promise<Listener> {
      const filter = { toolsListChanged: true, resourceSubscriptions: [A] };
      if (cell[0] === 'M')
        return opened.add(await listen(gateway.url(), filter, { headers: headersOf(who) }));
      const session = await sessionOf(who);
      const listener = opened.add(await listenLegacy(session));
      await session.request('resources/subscribe', { uri: A });
      return listener;
    },
  };
}

const seen = ({ json }: RawResponse, method: string): Loose => json.result[LISTS[method]?.[0] ?? ''][0];

describe.each(CELLS)('in the cell %s', (cell) => {
  test.each(Object.keys(LISTS))('nobody gets what %s is to another', async (method) => {
    const { request, backend } = await startPersonal(cell);
    const rounds = Array.from({ length: 4 }, () => PRINCIPALS).flat();
    for (const who of PRINCIPALS) expect(seen(await request(who, method), method).name).toBe(who ?? 'nobody');
    const answers = await Promise.all(rounds.map((who) => request(who, method)));
    for (const [index, answer] of answers.entries()) {
      const who = rounds[index];
      expect(seen(answer, method).name).toBe(who ?? 'nobody');
      expect(answer.headers['cache-control']).toMatch(/no-store/);
      if (cell[0] === 'M' && (who !== undefined || cell === 'ML'))
        expect(answer.json.result.cacheScope).toBe('private');
    }
    // Nor when the backend is away, and what was kept has to do.
    await backend.stop();
    for (const who of PRINCIPALS) {
      const answer = await request(who, method);
      if (answer.json.result) expect(seen(answer, method).name).toBe(who ?? 'nobody');
    }
  });

  test('nobody receives what is for another', async () => {
    const { listen: listenAs, backend, feeds } = await startPersonal(cell);
    const listeners = await Promise.all(PRINCIPALS.map((who) => listenAs(who)));
    if (cell[1] === 'L') {
      await until(() => feeds.length >= 3, 'the streams');
      for (const { owner, stream } of feeds) {
        stream.event({ jsonrpc: '2.0', method: UPDATED, params: { uri: A, owner } });
        stream.event({ jsonrpc: '2.0', method: TOOLS_CHANGED, params: { _meta: { owner } } });
      }
    } else {
      const asked = () =>
        backend
          .received('subscriptions/listen')
          .filter(({ json }) => json.params.notifications.resourceSubscriptions);
      await until(() => asked().length >= 3 && backend.listeners().length === 3, 'the subscriptions');
      const owners = new Set(asked().map((step) => nameIn(step)));
      expect([...owners].sort()).toEqual(['alice', 'bob', 'nobody']);
      backend.tell(UPDATED, { uri: A });
      backend.tell(TOOLS_CHANGED);
    }
    for (const [index, listener] of listeners.entries()) {
      await heardBy(listener, 2);
      const owners = listener.changes().map(({ params }) => params?.owner ?? params?._meta?.owner);
      const expected = PRINCIPALS[index] ?? 'nobody';
      if (cell[1] === 'L') expect(owners).toEqual([expected, expected]);
      else expect(listener.heard()).toEqual([A, TOOLS_CHANGED]);
    }
  });
});

test('what is for everybody, and needed no credential, is one for all who show none', async () => {
  const { request, backend, gateway } = await startPersonal('MM');
  const first = await request(undefined, 'tools/list');
  expect(first.json.result).toMatchObject({ cacheScope: 'public', ttlMs: 60_000 });
  const meta = { 'io.modelcontextprotocol/clientInfo': { name: 'Another', version: '2' } };
  const second = await modern(gateway.url(), 'tools/list', {}, { meta });
  expect(second.json.result.cacheScope).toBe('public');
  expect(backend.received('tools/list')).toHaveLength(1);
  // One that can do other things may be shown other tools.
  const capabilities = { elicitation: { form: {} } };
  await modern(gateway.url(), 'tools/list', {}, { capabilities });
  expect(backend.received('tools/list')).toHaveLength(2);
  expect(seen(await request('alice', 'tools/list'), 'tools/list').name).toBe('alice');
});

test('where credentials go no further than the gateway, all are served the same', async () => {
  const { request, backend } = await startPersonal('MM', { backend: { authorization: 'drop' } });
  for (const who of PRINCIPALS)
    expect(seen(await request(who, 'tools/list'), 'tools/list').name).toBe('nobody');
  expect(backend.received('tools/list')).toHaveLength(1);
});

test('what a backend says is private stays with the client that asked, also without credentials', async () => {
  const { request, backend, gateway } = await startPersonal('MM');
  backend.on('tools/list', () => ({
    result: { resultType: 'complete', ttlMs: 60_000, cacheScope: 'private', tools: [] },
  }));
  expect((await request(undefined, 'tools/list')).json.result.cacheScope).toBe('private');
  expect((await request(undefined, 'tools/list')).json.result.cacheScope).toBe('private');
  expect(backend.received('tools/list')).toHaveLength(1);
  const meta = { 'io.modelcontextprotocol/clientInfo': { name: 'Another', version: '2' } };
  await modern(gateway.url(), 'tools/list', {}, { meta });
  expect(backend.received('tools/list')).toHaveLength(2);
});
