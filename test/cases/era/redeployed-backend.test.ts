import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Peer, startV1, startV2 } from '../../support/peers/index.js';
import { type LegacySession, legacy, modern, type RawResponse } from '../../support/raw.js';
import { startTurntable, type Turntable } from '../../support/turntable.js';
import { useVirtualTime } from '../../support/virtual-time.js';
import { type HttpAnswer, isProbe, plain, rpcError } from './answers.js';

useVirtualTime();

const keep = keeper();

const verdicts = (gateway: TestGateway) =>
  gateway.logs.filter(({ msg }) => msg === 'era of the backend').map(({ era }) => era);

/** A call by a client of either era, which stays the same client throughout. */
type Add = () => Promise<RawResponse>;
const sum = { name: 'add', arguments: { a: 3, b: 4 } };
const echo = { name: 'echo', arguments: { a: 3 } };
const modernCall =
  (gateway: TestGateway, params = sum): Add =>
  () =>
    modern(gateway.url(), 'tools/call', params);
const legacyCall =
  (session: LegacySession, params = sum): Add =>
  () =>
    session.request('tools/call', params);

async function both(gateway: TestGateway, params: typeof sum | typeof echo): Promise<[string, Add][]> {
  const session = await legacy(gateway.url());
  return [
    ['modern', modernCall(gateway, params as typeof sum)],
    ['legacy', legacyCall(session, params as typeof sum)],
  ];
}

/** Real servers of either era behind one address. */
const SERVERS: Record<string, () => Promise<Peer>> = {
  'V1 stateful': () => startV1(),
  'V1 stateful that answers 400': () => startV1({ unknownSession: 400 }),
  'V1 stateless': () => startV1({ stateless: true }),
  'v2 of both eras': () => startV2(),
  'v2 of the modern era alone': () => startV2({ legacy: 'reject' }),
};
const names = Object.keys(SERVERS);
const PAIRS = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const));

test.each(PAIRS)('%s that is redeployed as %s goes on serving clients of both eras', async (from, to) => {
  const before = await keep((SERVERS[from] as () => Promise<Peer>)());
  const after = await keep((SERVERS[to] as () => Promise<Peer>)());
  const address: Turntable = await keep(startTurntable(before.url));
  const gateway = await keep(startGateway({ '/mcp': address.url }));
  const clients = await both(gateway, sum);
  for (const [, call] of clients) expect((await call()).json.result.content[0].text).toMatch(/is 7/);
  address.turn(after.url);
  for (const [era, call] of clients) {
    const calls = after.calls.length;
    const answer = await call();
    expect(answer.json, `${era} client`).toHaveProperty('result');
    expect(answer.json.result.content[0].text).toMatch(/is 7/);
    expect(after.calls.length - calls, 'the call ran once').toBe(1);
  }
  // And back again.
  address.turn(before.url);
  for (const [era, call] of clients) {
    expect((await call()).json, `${era} client`).toHaveProperty('result');
  }
});

/** How a modern server may refuse a request of a legacy session. */
const MODERN_REFUSALS: Record<string, HttpAnswer> = {
  '400 -32020': rpcError(400, { code: -32020, message: 'Header mismatch: Mcp-Method is missing' }),
  '400 -32022': rpcError(400, {
    code: -32022,
    message: 'Unsupported protocol version',
    data: { supported: ['2026-07-28'] },
  }),
  '400 -32602 about _meta': rpcError(400, { code: -32602, message: 'Invalid params: missing _meta' }),
  '400 -32602 in other words': rpcError(400, { code: -32602, message: 'protocolVersion: field required' }),
  '404 -32601': rpcError(404, { code: -32601, message: 'Method not found' }),
};

/** A gateway whose clients of both eras, five calls each, go on from one server to the other. */
async function redeployed(before: ScriptedBackend, after: ScriptedBackend): Promise<TestGateway> {
  const address = await keep(startTurntable(before.url));
  const gateway = await keep(startGateway({ '/mcp': address.url }));
  const clients = await both(gateway, echo);
  for (const [, call] of clients) await call();
  address.turn(after.url);
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => clients.map(([, call]) => call())).flat(),
  );
  for (const answer of answers) expect(answer.json.result.structuredContent).toEqual({ a: 3 });
  return gateway;
}

test.each(Object.entries(MODERN_REFUSALS))(
  'a server that became modern and refuses a request with %s is asked in its era, by all calls in flight',
  async (_name, refusal) => {
    const before = await keep(startLegacyBackend());
    const after = await keep(
      startModernBackend({
        intercept: (exchange) => {
          const meta = exchange.json?.params?._meta ?? {};
          if (exchange.method !== 'POST' || 'io.modelcontextprotocol/protocolVersion' in meta) return false;
          refusal(exchange);
          return true;
        },
      }),
    );
    const gateway = await redeployed(before, after);
    const carriedOut = after
      .received('tools/call')
      .filter(({ json }) => json.params._meta?.['io.modelcontextprotocol/protocolVersion']);
    expect(carriedOut).toHaveLength(10);
    expect(carriedOut.every(({ headers }) => headers['mcp-session-id'] === undefined)).toBe(true);
    expect(verdicts(gateway)).toEqual(['legacy', 'modern']);
  },
);

/** How a legacy server may refuse a request of the modern era. */
const LEGACY_REFUSALS: Record<string, HttpAnswer> = {
  '400 -32000, no session': rpcError(400, {
    code: -32000,
    message: 'Bad Request: No valid session ID provided',
  }),
  '400 -32000, not initialized': rpcError(400, {
    code: -32000,
    message: 'Bad Request: Server not initialized',
  }),
  '400 -32600 with an id of its own': rpcError(400, { code: -32600, message: 'Bad Request' }, 'server-error'),
  '400 in plain text': plain(400, 'Bad Request'),
  '404 in plain text': plain(404, 'Invalid session ID'),
  '422 in plain text': plain(422, 'expect initialize request'),
};

test.each(Object.entries(LEGACY_REFUSALS))(
  'a server that became legacy and refuses a request with %s is asked in its era, by all calls in flight',
  async (_name, refusal) => {
    const before = await keep(startModernBackend());
    const after = await keep(
      startLegacyBackend({
        intercept: (exchange) => {
          if (exchange.method !== 'POST' || exchange.headers['mcp-method'] === undefined) return false;
          refusal(exchange);
          return true;
        },
      }),
    );
    const gateway = await redeployed(before, after);
    expect(after.received('tools/call').filter(({ headers }) => headers['mcp-session-id'])).toHaveLength(10);
    expect(verdicts(gateway)).toEqual(['modern', 'legacy']);
  },
);

describe('a refusal that could mean the other era, from a server that has not changed', () => {
  const refused = { code: -32602, message: 'a: expected a string', data: { path: ['a'] } };

  test('is the answer to the client, and the call is not sent again', async () => {
    const backend: ScriptedBackend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const clients = await both(gateway, echo);
    for (const [, call] of clients) await call();
    backend.on('tools/call', ({ sendJson, id }) => {
      sendJson({ jsonrpc: '2.0', id, error: refused }, 400);
      return undefined;
    });
    const before = backend.received('tools/call').length;
    for (const [, call] of clients) expect((await call()).json.error).toEqual(refused);
    expect(backend.received('tools/call')).toHaveLength(before + clients.length);
  });

  test('is the answer of a modern server too', async () => {
    const noChannel = { code: -32000, message: 'this transport context has no back-channel' };
    const backend = await keep(
      startModernBackend({
        on: {
          'tools/call': ({ sendJson, id }) => {
            sendJson({ jsonrpc: '2.0', id, error: noChannel }, 400);
            return undefined;
          },
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (const [, call] of await both(gateway, echo)) expect((await call()).json.error).toEqual(noChannel);
    expect(backend.received('tools/call')).toHaveLength(2);
    expect(verdicts(gateway)).toEqual(['modern']);
  });

  test('is the answer also while the probe fails', async () => {
    let down = false;
    const backend = await keep(
      startLegacyBackend({
        intercept: (exchange) => {
          if (!down || !isProbe(exchange)) return false;
          exchange.destroy();
          return true;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = modernCall(gateway, echo as never);
    await call();
    down = true;
    backend.on(
      'tools/call',
      ({ sendJson, id }) => void sendJson({ jsonrpc: '2.0', id, error: refused }, 400) as undefined,
    );
    expect((await call()).json.error).toEqual(refused);
  });
});

test('a server that keeps changing its mind costs each caller one failed attempt, and never a loop', async () => {
  const backend = await keep(
    startLegacyBackend({
      intercept: (exchange) => {
        if (exchange.method !== 'POST') return false;
        if (isProbe(exchange)) plain(404)(exchange);
        else if (exchange.json?.method === 'initialize') plain(400, 'Bad Request')(exchange);
        else return false;
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const before = backend.requests.length;
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, i) => modern(gateway.url(), 'tools/list', {}, { id: i })),
  );
  for (const [i, answer] of answers.entries()) {
    expect(answer.status).toBe(502);
    expect(answer.json).toMatchObject({ id: i, error: { code: -32603 } });
    expect(answer.json.error.message).toMatch(/refused the handshake with HTTP 400/);
    expect(detailOf(gateway, answer)).toContain('refused the handshake with HTTP 400: Bad Request');
  }
  expect(backend.requests.length - before).toBeLessThan(10);
});
