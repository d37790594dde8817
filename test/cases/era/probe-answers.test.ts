import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { LEGACY, legacy, MODERN, modern } from '../../support/raw.js';
import { type HttpAnswer, isProbe, plain, probed, refusedVersion, rpcError, rpcResult } from './answers.js';

const keep = keeper();

/** A gateway in front of a legacy server that answers the probe in a way of its own. */
async function behind(probe: HttpAnswer): Promise<{ gateway: TestGateway; backend: ScriptedBackend }> {
  const backend = await keep(startLegacyBackend({ intercept: probed(probe) }));
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  return { gateway, backend };
}

const verdicts = (gateway: TestGateway) => gateway.logs.filter(({ msg }) => msg === 'era of the backend');

/** What servers of the older revisions say to `server/discover`; each means that the handshake is to be tried. */
const LEGACY_ANSWERS: Record<string, HttpAnswer> = {
  'method not found': (exchange) =>
    rpcError(200, { code: -32601, message: 'Method not found' }, exchange.json.id)(exchange),
  '400 -32600, no session id': rpcError(
    400,
    { code: -32600, message: 'Bad Request: Missing session ID' },
    'server-error',
  ),
  '400 -32000, not initialized': rpcError(400, {
    code: -32000,
    message: 'Bad Request: Server not initialized',
  }),
  '400 -32000, unsupported protocol version': rpcError(400, {
    code: -32000,
    message: `Bad Request: Unsupported protocol version: ${MODERN} (supported versions: ${LEGACY})`,
  }),
  '400 -32001': rpcError(400, { code: -32001, message: 'Session required' }),
  '404 -32601': rpcError(404, { code: -32601, message: 'Not Found' }),
  '200 -32602': rpcError(200, { code: -32602, message: 'Invalid request parameters', data: '' }),
  '200 -32603': rpcError(200, { code: -32603, message: 'Internal error' }),
  '400 -32020, a code that only looks modern': rpcError(400, { code: -32020, message: 'Header mismatch' }),
  '400 in plain text': plain(400, 'Bad Request: Missing session ID'),
  '400 in JSON that is not JSON-RPC': plain(400, '{"error":"no"}', { 'content-type': 'application/json' }),
  '400 with an empty body': plain(400),
  '404 in HTML': plain(404, '<html><h1>Not Found</h1></html>', { 'content-type': 'text/html' }),
  '404 in plain text about a session': plain(404, 'Invalid session ID'),
  '405': plain(405, 'Method Not Allowed'),
  '406': rpcError(406, { code: -32000, message: 'Not Acceptable' }),
  '415': plain(415, 'Unsupported Media Type'),
  '422 in plain text': plain(422, 'Unexpected message, expect initialize request'),
  '200 in HTML': plain(200, '<html>Welcome</html>', { 'content-type': 'text/html' }),
  '200 without a body': plain(200),
  '202': plain(202),
  '204': ({ res }) => void res.writeHead(204).end(),
  'a stream that ends without a response': ({ stream }) => stream().end(),
  'a result without versions': rpcResult({}),
  'a result that lists its older revisions': rpcResult({ supportedVersions: [LEGACY, '2025-06-18'] }),
  '-32022 that names older revisions': refusedVersion([LEGACY, '2025-06-18']),
  '-32022 that names older revisions beside newer ones': refusedVersion(['2026-11-30', LEGACY]),
  '-32022 that names nothing': refusedVersion(undefined),
  '-32022 without data': rpcError(400, { code: -32022, message: 'Unsupported protocol version' }),
  '-32022 with an empty list': refusedVersion([]),
  '-32022 with a list of nonsense': refusedVersion([1, null, 'draft']),
  '-32022 at 200 that names older revisions': refusedVersion([LEGACY], 200),
  'an error with the id null': rpcError(400, { code: -32000, message: 'Session id required' }, null),
  'an error without an id': plain(400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"No session"}}', {
    'content-type': 'application/json',
  }),
  'an error with an id of its own': rpcError(400, { code: -32000, message: 'No session' }, 'server-error'),
  'an error in an array': ({ sendJson }) =>
    sendJson([{ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'No session' } }], 400),
};

describe.each(Object.entries(LEGACY_ANSWERS))('a backend that answers the probe with %s', (_name, answer) => {
  test('is served with the handshake', async () => {
    const { gateway, backend } = await behind(answer);
    const listed = await modern(gateway.url(), 'tools/list');
    expect(listed.status).toBe(200);
    expect(listed.json.result).toMatchObject({ resultType: 'complete', tools: [{ name: 'echo' }] });

    const [initialize] = backend.received('initialize');
    expect(initialize?.headers).not.toHaveProperty('mcp-session-id');
    expect(initialize?.headers).not.toHaveProperty('mcp-protocol-version');
    expect(initialize?.headers).not.toHaveProperty('mcp-method');
    expect(initialize?.json.params.protocolVersion).toBe(LEGACY);
    expect(verdicts(gateway)).toEqual([
      expect.objectContaining({ era: 'legacy', route: '/mcp', reason: expect.stringMatching(/\S/) }),
    ]);

    // Once found, the verdict is not asked for again.
    const probes = backend.received('server/discover').length;
    const session = await legacy(gateway.url());
    const called = await session.request('tools/call', { name: 'echo', arguments: { a: 1 } });
    expect(called.json.result.structuredContent).toEqual({ a: 1 });
    expect(backend.received('server/discover')).toHaveLength(probes);
  });
});

test('a server that demands a session for all but the handshake, in plain text, is served', async () => {
  const backend = await startLegacyBackend({
    intercept: ({ json, headers, method, sendText }) => {
      if (method !== 'POST' || json?.method === 'initialize' || headers['mcp-session-id']) return false;
      sendText('Invalid session ID', 404);
      return true;
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toHaveLength(1);
  expect(verdicts(gateway)[0].reason).toContain('HTTP 404');
});

describe.each<[string, HttpAnswer]>([
  ['-32022 that names newer revisions alone', refusedVersion(['2026-11-30'])],
  ['-32022 at 200 that names newer revisions alone', refusedVersion(['2026-11-30', '2027-03-01'], 200)],
  ['a result that lists newer revisions alone', rpcResult({ supportedVersions: ['2026-11-30'] })],
])('a backend that answers the probe with %s', (_name, answer) => {
  test('is an error that says so to clients of both eras, and no empty list', async () => {
    const { gateway, backend } = await behind(answer);
    const listed = await modern(gateway.url(), 'tools/list', {}, { id: 'l1' });
    expect(listed.status).toBe(502);
    expect(listed.json).toMatchObject({ id: 'l1', error: { code: -32603 } });
    expect(detailOf(gateway, listed)).toMatch(/no common protocol version .*2026-11-30.* 2026-07-28/);
    const session = await legacy(gateway.url());
    expect(session.initialize.json.error.data).toEqual({ eragate: 'ERAGATE_NO_COMMON_VERSION' });
    expect(backend.received('initialize')).toEqual([]);
  });
});

test('a server that refuses the version of the probe and names the same one is asked again, and is modern', async () => {
  let refusals = 1;
  const backend = await startModernBackend({
    intercept: (exchange) => {
      if (!isProbe(exchange) || refusals-- <= 0) return false;
      refusedVersion([MODERN])(exchange);
      return true;
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  await until(() => verdicts(gateway).length > 0, 'the verdict');
  expect(verdicts(gateway)[0].era).toBe('modern');
  expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toHaveLength(1);
});

test('the session that a server opens for the probe is ended again, and is not that of the handshake', async () => {
  const { gateway, backend } = await behind(({ sendJson }) => {
    const error = { code: -32600, message: 'Bad Request: Missing session ID' };
    sendJson({ jsonrpc: '2.0', id: 'server-error', error }, 400, { 'mcp-session-id': 'leaked' });
  });
  await modern(gateway.url(), 'tools/list');
  const ended = () =>
    backend.requests.filter(
      ({ method, headers }) => method === 'DELETE' && headers['mcp-session-id'] === 'leaked',
    );
  await until(() => ended().length > 0, 'the DELETE');
  expect(ended()).toHaveLength(1);
  expect(backend.received('tools/list')[0]?.headers['mcp-session-id']).not.toBe('leaked');
});
