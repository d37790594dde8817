import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type Script, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep } from '../../support/net.js';
import { startV2 } from '../../support/peers/index.js';
import { legacy, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';
import { type HttpAnswer, isProbe, plain, probed, rpcError } from './answers.js';

useVirtualTime();

const keep = keeper();

const verdicts = (gateway: TestGateway) => gateway.logs.filter(({ msg }) => msg === 'era of the backend');
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Lets the first `times` probes be answered so; those after them reach the server. */
function atFirst(times: number, answer: HttpAnswer): Pick<Script, 'intercept'> {
  let left = times;
  return { intercept: (exchange) => isProbe(exchange) && left-- > 0 && probed(answer)(exchange) };
}

/** Answers that come from servers of any era, and from what stands before them. */
const NO_EVIDENCE: Record<string, HttpAnswer> = {
  '401': plain(401, '', { 'www-authenticate': 'Bearer' }),
  '401 with a JSON-RPC error': rpcError(401, { code: -32000, message: 'Unauthorized' }),
  '403': plain(403, 'Forbidden'),
  '408': plain(408, 'Request Timeout'),
  '425': plain(425, 'Too Early'),
  '429': plain(429, 'Slow down', { 'retry-after': '1' }),
  '500 with a JSON-RPC error': rpcError(500, { code: -32603, message: 'Internal error' }),
  '500 in HTML': plain(500, '<h1>Internal Server Error</h1>', { 'content-type': 'text/html' }),
  '502': plain(502, 'Bad Gateway'),
  '503': plain(503, 'Service Unavailable', { 'retry-after': '1' }),
  '504': plain(504, 'Gateway Timeout'),
  'a broken connection': ({ destroy }) => destroy(),
};

describe.each(Object.entries(NO_EVIDENCE))('a probe answered with %s', (_name, answer) => {
  test('proves nothing: the handshake is tried, and the probe again with the next call', async () => {
    const backend = await keep(startLegacyBackend({ intercept: probed(answer) }));
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (let call = 1; call <= 2; call++) {
      const before = backend.received('server/discover').length;
      const listed = await modern(gateway.url(), 'tools/list');
      expect(listed.json.result.tools).toHaveLength(1);
      if (call > 1) expect(backend.received('server/discover').length).toBeGreaterThan(before);
    }
    // One handshake: the session that it opened is as good as any.
    expect(backend.received('initialize')).toHaveLength(1);
    const session = await legacy(gateway.url());
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
    expect(verdicts(gateway)).toEqual([]);
  });

  test('for a while is no obstacle to a modern server', async () => {
    const backend = await keep(startModernBackend(atFirst(3, answer)));
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const url = gateway.url();
    // Meanwhile the error is of the kind that is tried again, here or with a credential, and never one that is taken for
    // the older revisions.
    for (let call = 0; call < 4; call++) {
      const { status } = await modern(url, 'server/discover');
      expect(status === 200 || status === 401 || status === 403 || status >= 500).toBe(true);
    }
    const listed = await modern(url, 'tools/list');
    expect(listed.json.result.tools).toHaveLength(1);
    expect(verdicts(gateway).map(({ era }) => era)).toEqual(['modern']);
    expect(backend.received('tools/list')).toHaveLength(1);
  });
});

test('a server of both eras is used in the older one for no longer than its probe fails', async () => {
  const peer = await keep(startV2());
  let failing = true;
  const backend = await keep(
    startModernBackend({
      intercept: (exchange) => {
        if (failing && isProbe(exchange)) plain(503)(exchange);
        else void forward(peer.url, exchange);
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const add = () => modern(gateway.url(), 'tools/call', { name: 'add', arguments: { a: 3, b: 4 } });
  const first = await add();
  expect(first.json.result).toMatchObject({
    resultType: 'complete',
    content: [{ text: 'The sum of 3 and 4 is 7.' }],
  });
  failing = false;
  await add();
  const cells = gateway.logs.filter(({ method }) => method === 'tools/call').map(({ cell }) => cell);
  expect(cells).toEqual(['ML', 'MM']);
});

async function forward(url: string, { headers, text, sendText }: Parameters<HttpAnswer>[0]): Promise<void> {
  const { host: _host, connection: _connection, 'content-length': _length, ...rest } = headers;
  const answer = await fetch(url, { method: 'POST', headers: rest as Record<string, string>, body: text });
  sendText(await answer.text(), answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
}

describe('a server that refuses the probe for want of a credential', () => {
  test('is served as legacy where it takes the same credential in the handshake', async () => {
    const backend = await keep(
      startLegacyBackend({ intercept: probed(plain(401, '', { 'www-authenticate': 'Bearer' })) }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const listed = await modern(gateway.url(), 'tools/list', {}, { headers: bearer('t1') });
    expect(listed.json.result.tools).toHaveLength(1);
    expect(backend.received('initialize')[0]?.headers.authorization).toBe('Bearer t1');
    expect(backend.received('server/discover').at(-1)?.headers.authorization).toBe('Bearer t1');
  });

  test('gives its challenge to clients of both eras where it refuses the handshake too', async () => {
    const challenge = 'Bearer error="invalid_token", scope="mcp"';
    const backend = await keep(
      startLegacyBackend({
        intercept: (exchange) => {
          rpcError(401, { code: -32000, message: 'Token expired' })({
            ...exchange,
            sendJson: (body, status) => exchange.sendJson(body, status, { 'www-authenticate': challenge }),
          });
          return true;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const listed = await modern(gateway.url(), 'tools/list', {}, { id: 'a', headers: bearer('old') });
    const discovered = await modern(
      gateway.url(),
      'server/discover',
      {},
      { id: 'a', headers: bearer('old') },
    );
    const { initialize } = await legacy(gateway.url(), { headers: bearer('old') });
    for (const refused of [listed, discovered, initialize]) {
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toBe(challenge);
      expect(refused.json.error.data).toEqual({ eragate: 'ERAGATE_UNAUTHORIZED' });
      expect(refused.text).not.toContain('Token expired');
      expect(detailOf(gateway, refused)).toContain('Token expired');
    }
    expect(listed.json.id).toBe('a');
    expect(initialize.json.id).toBe(0);
  });

  test.each([
    ['complains of a missing header', { code: -32020, message: 'Missing MCP-Protocol-Version header' }],
    [
      'names the modern version alone',
      { code: -32022, message: 'Unsupported', data: { supported: ['2026-07-28'], requested: '2025-11-25' } },
    ],
  ])('but not the handshake, of which it %s, is modern, and its challenge is shown', async (_how, error) => {
    const backend = await keep(
      startModernBackend({
        intercept: (exchange) => {
          if (exchange.json.method === 'initialize') rpcError(400, error)(exchange);
          else if (exchange.headers.authorization === 'Bearer good') return false;
          else plain(401, '', { 'www-authenticate': 'Bearer scope="mcp"' })(exchange);
          return true;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (const method of ['server/discover', 'tools/list']) {
      const refused = await modern(gateway.url(), method);
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toBe('Bearer scope="mcp"');
    }
    const listed = await modern(gateway.url(), 'tools/list', {}, { headers: bearer('good') });
    expect(listed.json.result.tools).toHaveLength(1);
  });

  test('is found to be modern by the first caller that has one', async () => {
    const backend = await keep(
      startModernBackend({
        intercept: (exchange) => {
          if (exchange.headers.authorization === 'Bearer good') return false;
          plain(401, '', { 'www-authenticate': 'Bearer' })(exchange);
          return true;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(401);
    const listed = await modern(gateway.url(), 'tools/list', {}, { headers: bearer('good') });
    expect(listed.json.result.tools).toHaveLength(1);
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(401);
  });
});

/** Ways to say nothing at all. */
const SILENCES: Record<string, HttpAnswer> = {
  'no byte': () => {},
  'headers alone': ({ res }) =>
    void res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders(),
  'half a body': ({ res }) =>
    void res.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc":"2.0",'),
  'a stream of comments': ({ stream, res }) => {
    const events = stream();
    const timer = setInterval(() => events.comment('ping'), 20);
    res.on('close', () => clearInterval(timer));
  },
};

describe.each(Object.entries(SILENCES))('a probe met by silence (%s)', (_name, silence) => {
  test('is given up after its own short time, and the handshake is tried', async () => {
    const backend = await keep(startLegacyBackend({ intercept: probed(silence) }));
    const route = { backend: { url: backend.url }, timeouts: { probe: '300ms' } };
    const gateway = await keep(startGateway({ '/mcp': route }));
    const before = Date.now();
    const listed = await modern(gateway.url(), 'tools/list');
    expect(listed.json.result.tools).toHaveLength(1);
    expect(Date.now() - before).toBeLessThan(3_000);
    expect(verdicts(gateway)).toEqual([
      expect.objectContaining({ era: 'legacy', reason: expect.stringMatching(/unproved: .*no answer/) }),
    ]);

    // A wait like this is not repeated with every call.
    const again = Date.now();
    await modern(gateway.url(), 'tools/list');
    expect(Date.now() - again).toBeLessThan(250);
    expect(backend.received('server/discover').at(-1)?.disconnected).toBe(true);
  });
});

test('a probe that is answered too late is not taken for the answer of another request', async () => {
  const late: HttpAnswer[] = [];
  const backend = await keep(
    startLegacyBackend({
      intercept: probed((exchange) => {
        const answer = rpcError(200, { code: -1, message: 'late' }, exchange.json.id);
        late.push(() => answer(exchange));
      }),
    }),
  );
  const route = { backend: { url: backend.url }, timeouts: { probe: '200ms' } };
  const gateway = await keep(startGateway({ '/mcp': route }));
  backend.on('tools/list', async () => {
    for (const answer of late.splice(0)) answer(undefined as never);
    await sleep(50);
    return { result: { tools: [] } };
  });
  expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toEqual([]);
});

test('a modern server that is silent at first is found to be modern within the same call', async () => {
  const backend = await keep(startModernBackend(atFirst(1, () => {})));
  const route = { backend: { url: backend.url }, timeouts: { probe: '200ms' } };
  const gateway = await keep(startGateway({ '/mcp': route }));
  expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toHaveLength(1);
  expect(verdicts(gateway).at(-1).era).toBe('modern');
});
