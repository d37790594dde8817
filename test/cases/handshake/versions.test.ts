import { describe, expect, test } from 'vitest';
import { connect } from '../../support/clients.js';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type BackendExchange,
  type ScriptedBackend,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';
import { startEverything, startV1, startV2 } from '../../support/peers/index.js';
import { LEGACY, legacy, MODERN, modern, send } from '../../support/raw.js';

const keep = keeper();
const gatewayTo = (url: string, more: Loose = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url, ...more } } }));

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const echo = { name: 'echo', arguments: { a: 1 } };
const offered = (backend: ScriptedBackend) =>
  backend.received('initialize').map(({ json }) => json.params.protocolVersion);

describe('the version that a client asks for', () => {
  const BACKENDS: Record<string, () => Promise<{ url: string; close(): Promise<void> }>> = {
    'a server that knows the newest alone': () => startLegacyBackend({ version: LEGACY }),
    'a server that knows the oldest alone': () => startLegacyBackend({ version: '2024-11-05' }),
    'a modern server': () => startModernBackend(),
    'a real server of the older revisions': () => startV1(),
    'a real server without sessions': () => startV1({ stateless: true }),
    'a real modern server': () => startV2({ legacy: 'reject' }),
    'a real server of both eras': () => startV2(),
    'server-everything': () => startEverything(),
  };
  test.each(Object.entries(BACKENDS))('is the one it gets, in front of %s', async (_name, start) => {
    const backend = await keep(start());
    const gateway = await gatewayTo(backend.url);
    for (const version of REVISIONS) {
      const session = await legacy(gateway.url(), { version });
      expect(session.initialize.status).toBe(200);
      expect(session.initialize.json.result.protocolVersion).toBe(version);
      expect((await session.request('tools/list')).json.result.tools.length).toBeGreaterThan(0);
    }
    // What nobody knows is answered with the newest of the handshake's revisions.
    for (const version of ['2099-01-01', MODERN, '2024-10-07', '1.0', '', 'latest']) {
      const session = await legacy(gateway.url(), { version });
      expect(session.initialize.status, version).toBe(200);
      expect(session.initialize.json.result.protocolVersion, version).toBe(LEGACY);
    }
  });

  test.each<[string, Loose]>([
    ['no version', { capabilities: {}, clientInfo: { name: 'c', version: '1' } }],
    ['a number', { protocolVersion: 2025, capabilities: {}, clientInfo: { name: 'c', version: '1' } }],
    ['null', { protocolVersion: null, capabilities: {} }],
    ['no capabilities and no name', { protocolVersion: LEGACY }],
    ['capabilities that are no object', { protocolVersion: LEGACY, capabilities: true, clientInfo: 'c' }],
  ])('may be put badly (%s)', async (_name, params) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url);
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const { status, headers, json } = await send(gateway.url(), { body });
    expect(status).toBe(200);
    expect(json.result.protocolVersion).toBe(LEGACY);
    expect(headers['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/);
    // The backend is told what it can read.
    const [sent] = backend.received('initialize');
    expect(sent?.json.params).toMatchObject({
      protocolVersion: LEGACY,
      capabilities: {},
      clientInfo: { name: expect.any(String), version: expect.any(String) },
    });
  });

  test.each(['v1', 'v2 legacy'] as const)(
    'suits a real client (%s) in front of every server',
    async (kind) => {
      for (const start of [() => startLegacyBackend({ version: '2024-11-05' }), () => startModernBackend()]) {
        const backend = await keep(start());
        const gateway = await gatewayTo(backend.url);
        const client = await keep(connect(kind, gateway.url()));
        expect((await client.callTool('echo', { a: 1 })).structuredContent).toEqual({ a: 1 });
      }
    },
  );
});

type Refusal = (exchange: BackendExchange) => void;
const error =
  (status: number, code: number, message: string, data?: Loose): Refusal =>
  ({ sendJson, json }) =>
    sendJson({ jsonrpc: '2.0', id: json.id, error: { code, message, data } }, status);

/** A server that refuses newer revisions than its own at the door, in place of naming its own in the answer. */
function strict(newest: string, refuse: (requested: string) => Refusal) {
  return startLegacyBackend({
    intercept: (exchange) => {
      const requested = exchange.json?.method === 'initialize' ? exchange.json.params.protocolVersion : '';
      if (requested <= newest) return false;
      refuse(requested)(exchange);
      return true;
    },
  });
}

const known = (newest: string) => REVISIONS.filter((revision) => revision <= newest).reverse();
const REFUSALS: Record<string, (newest: string) => (requested: string) => Refusal> = {
  '400 in plain text with a list':
    (newest) =>
    () =>
    ({ sendText }) =>
      sendText(`Unsupported protocol version (supported versions: ${known(newest).join(', ')})`, 400),
  '400 that names the refused version too': (newest) => (requested) =>
    error(400, -32000, `Unsupported protocol version: ${requested} (supported: ${known(newest).join(', ')})`),
  '400 -32602 with the list in the data': (newest) => (requested) =>
    error(400, -32602, 'Unsupported protocol version', { supported: known(newest), requested }),
  '200 -32602 with the list in the data': (newest) => (requested) =>
    error(200, -32602, 'Unsupported protocol version', { supported: known(newest), requested }),
  '400 without a list': () => () => error(400, -32600, 'Unsupported protocol version'),
  '400 in JSON of its own':
    () =>
    () =>
    ({ sendText }) =>
      sendText('{"error":"Protocol version mismatch"}', 400, { 'content-type': 'application/json' }),
  '412 without a list':
    () =>
    () =>
    ({ sendText }) =>
      sendText('bad MCP version', 412),
};

describe.each(Object.entries(REFUSALS))(
  'a server that refuses newer versions in the handshake with %s',
  (_name, refuse) => {
    test.each(['2024-11-05', '2025-03-26', '2025-06-18'])(
      'and knows none after %s is offered that one, once',
      async (newest) => {
        const backend = await keep(strict(newest, refuse(newest)));
        const gateway = await gatewayTo(backend.url);
        const { json } = await modern(gateway.url(), 'tools/call', echo);
        expect(json.result.structuredContent).toEqual({ a: 1 });
        const first = offered(backend);
        expect(first[0]).toBe(LEGACY);
        expect(first.at(-1)).toBe(newest);
        expect(first.length).toBeLessThanOrEqual(REVISIONS.length);

        // It is remembered for all who come after, and they are told nothing of it.
        const session = await legacy(gateway.url(), { version: LEGACY });
        expect(session.initialize.json.result.protocolVersion).toBe(LEGACY);
        expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
        const old = await legacy(gateway.url(), { version: '2024-11-05' });
        expect((await old.request('tools/call', echo)).status).toBe(200);
        expect(offered(backend).slice(first.length)).toEqual([newest, '2024-11-05']);
        for (const { headers } of backend.received('tools/call').slice(0, 2)) {
          expect(headers['mcp-protocol-version']).toBe(newest);
        }
      },
    );
  },
);

describe('a server that refuses a version only where it is in the header', () => {
  const startServer = (answered?: string) =>
    startLegacyBackend({
      ...(answered === undefined ? {} : { version: answered }),
      intercept: ({ headers, sendText }) => {
        const named = String(headers['mcp-protocol-version'] ?? '2025-03-26');
        if (named <= '2025-06-18' || named === MODERN) return false;
        sendText(
          `Bad Request: Unsupported protocol version: ${named} (supported: 2025-06-18, 2025-03-26)`,
          400,
        );
        return true;
      },
    });

  test('is offered one that it takes, once for all', async () => {
    const backend = await keep(startServer());
    const gateway = await gatewayTo(backend.url);
    for (let n = 0; n < 2; n++) {
      expect((await modern(gateway.url(), 'tools/call', echo)).json.result.structuredContent).toEqual({
        a: 1,
      });
      const session = await legacy(gateway.url());
      expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
    }
    expect(offered(backend).slice(0, 3)).toEqual([LEGACY, '2025-06-18', '2025-06-18']);
    expect(offered(backend).filter((version) => version === LEGACY)).toHaveLength(1);
    // The session in the version that could not be used is ended; the others go on.
    expect(backend.received('notifications/initialized')[0]?.headers['mcp-protocol-version']).toBe(LEGACY);
  });

  test('is an error, and no loop, if it answers with that one whatever it is offered', async () => {
    const backend = await keep(startServer(LEGACY));
    const gateway = await gatewayTo(backend.url);
    const answer = await modern(gateway.url(), 'tools/call', echo);
    expect(answer.status).toBe(502);
    expect(detailOf(gateway, answer)).toContain('Unsupported protocol version: 2025-11-25');
    expect(offered(backend).length).toBeLessThanOrEqual(2 * REVISIONS.length);
  });
});

test('a server that knows none of the versions is an error that repeats its words, without a loop', async () => {
  for (const refuse of [
    error(400, -32602, 'Unsupported protocol version', { supported: ['2023-01-01'] }),
    error(400, -32600, 'Unsupported protocol version'),
  ]) {
    const backend = await keep(strict('2000-01-01', () => refuse));
    const gateway = await gatewayTo(backend.url);
    const { status, json } = await modern(gateway.url(), 'tools/list');
    expect(status).toBe(502);
    expect(json.error.message).toMatch(/Unsupported protocol version/);
    expect(offered(backend).length).toBeLessThanOrEqual(REVISIONS.length);
    // Nothing is concluded from it: the server may be repaired.
    backend.requests.length = 0;
    await modern(gateway.url(), 'tools/list');
    expect(offered(backend)[0]).toBe(LEGACY);
  }
});

describe('the version header to the backend', () => {
  const versionsOf = (backend: ScriptedBackend) =>
    new Set(
      backend.requests
        .filter(({ json }) => json?.method !== 'initialize' && json?.method !== 'server/discover')
        .map(({ headers }) => headers['mcp-protocol-version']),
    );

  test.each([...REVISIONS, '2024-10-07'])(
    'is what the backend settled on (%s), whatever the client did',
    async (version) => {
      const backend = await keep(startLegacyBackend({ version }));
      const gateway = await gatewayTo(backend.url);
      for (const asked of ['2025-03-26', LEGACY]) {
        const session = await legacy(gateway.url(), { version: asked });
        const stream = await session.listen();
        await session.request('tools/call', echo);
        await session.notify('notifications/roots/list_changed');
        stream.abort();
        await session.delete();
      }
      await modern(gateway.url(), 'tools/call', echo);
      for (const { headers } of backend.received('initialize'))
        expect(headers).not.toHaveProperty('mcp-protocol-version');
      expect(versionsOf(backend)).toEqual(new Set([version]));
      expect(backend.received('notifications/initialized')[0]?.headers['mcp-protocol-version']).toBe(version);
    },
  );

  test('is that of a modern backend, and says what the body says', async () => {
    const backend = await keep(startModernBackend());
    const gateway = await gatewayTo(backend.url);
    for (const version of REVISIONS) {
      const session = await legacy(gateway.url(), { version });
      await session.request('tools/call', echo);
    }
    await modern(gateway.url(), 'tools/call', echo);
    const calls = backend.received('tools/call');
    expect(calls).toHaveLength(5);
    for (const { headers, json } of calls) {
      expect(headers['mcp-protocol-version']).toBe(MODERN);
      expect(json.params._meta['io.modelcontextprotocol/protocolVersion']).toBe(MODERN);
    }
  });

  test('does not follow one that the client changes within its session', async () => {
    const backend = await keep(startLegacyBackend({ version: '2025-03-26' }));
    const gateway = await gatewayTo(backend.url);
    const session = await legacy(gateway.url(), { version: LEGACY });
    for (const version of [...REVISIONS, undefined]) {
      const headers = { 'mcp-protocol-version': version };
      expect((await session.request('tools/call', echo, { headers })).status).toBe(200);
    }
    expect(versionsOf(backend)).toEqual(new Set(['2025-03-26']));
  });
});

test.each(['1999-01-01', '2025-01-01', 'latest', ''])(
  'a version header that no revision knows (%j) is refused under the id, and reaches no backend',
  async (version) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url);
    const session = await legacy(gateway.url());
    const before = backend.requests.length;
    const refused = await session.request('tools/call', echo, {
      id: 'v',
      headers: { 'mcp-protocol-version': version },
    });
    expect(refused.status).toBe(400);
    expect(refused.json).toMatchObject({ id: 'v', error: { code: -32000 } });
    expect(refused.json.error.message).toContain('Unsupported protocol version');
    for (const revision of REVISIONS) expect(refused.json.error.message).toContain(revision);
    expect(backend.requests).toHaveLength(before);
    expect((await session.request('tools/call', echo)).status).toBe(200);
  },
);
