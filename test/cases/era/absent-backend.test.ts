import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { freePort, until } from '../../support/net.js';
import { legacy, modern } from '../../support/raw.js';

const keep = keeper();
const warnings = (gateway: TestGateway) =>
  gateway.logs.filter(({ level, msg }) => level === 40 && /the backend is not there/.test(msg));
const verdicts = (gateway: TestGateway) => gateway.logs.filter(({ msg }) => msg === 'era of the backend');

/** A server that answers each request with a 404 that is no JSON-RPC. */
const nothing = (start: typeof startLegacyBackend | typeof startModernBackend) =>
  start({
    intercept: ({ sendText }) => {
      sendText('<h1>Not Found</h1>', 404);
      return true;
    },
  });

describe.each(['auto', 'streamable-http', 'http-sse'])('over %s', (transport) => {
  test('a backend that answers 404 to all is warned about, and both eras of clients are told', async () => {
    const backend = await keep(nothing(startLegacyBackend));
    const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, transport } } }));
    const listed = await modern(gateway.url(), 'tools/list');
    expect(listed.status).toBe(502);
    const session = await legacy(gateway.url());
    expect(session.initialize.json.error.code).toBe(-32603);
    // A transport of one era alone is not probed.
    if (transport === 'http-sse') return;
    for (const answer of [listed, session.initialize]) {
      expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_BACKEND_UNREACHABLE' });
      expect(detailOf(gateway, answer)).toMatch(/404.*nothing is at this path.*backend\.url/);
    }
    await until(() => warnings(gateway).length > 0, 'the warning');
    expect(warnings(gateway)[0]).toMatchObject({ route: '/mcp', reason: expect.stringMatching(/404/) });
    expect(verdicts(gateway)).toEqual([]);
  });
});

test.each(['auto', 'modern'])('a backend that is down at the start is warned about: era %s', async (era) => {
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  const gateway = await keep(startGateway({ '/mcp': { backend: { url, era } } }));
  await until(() => warnings(gateway).length > 0, 'the warning');
  expect(warnings(gateway)).toEqual([
    expect.objectContaining({ level: 40, route: '/mcp', reason: expect.stringMatching(/ECONNREFUSED/) }),
  ]);
});

test('a modern backend of a fixed era at another path is warned about', async () => {
  const backend = await keep(nothing(startModernBackend));
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, era: 'modern' } } }));
  await until(() => warnings(gateway).length > 0, 'the warning');
});

test.each([
  ['legacy', startLegacyBackend],
  ['modern', startModernBackend],
])('a %s backend that is there is not warned about', async (_era, start) => {
  const backend = await keep(start());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  await until(() => verdicts(gateway).length > 0, 'the verdict');
  expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
  expect(warnings(gateway)).toEqual([]);
});

test('a backend that is put at its path later is served from then on', async () => {
  let there = false;
  const backend = await keep(
    startLegacyBackend({
      intercept: ({ sendText }) => {
        if (!there) sendText('Not Found', 404);
        return !there;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  expect((await modern(gateway.url(), 'tools/list')).status).toBe(502);
  there = true;
  expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
});

test.each([
  ['a script that is not there', [process.execPath, '/not/there.js']],
  ['a program that exits with 0', [process.execPath, '-e', '0']],
  ['a program that is not there', ['/not/there']],
])('%s is no legacy server, and is warned about', async (_name, [command, ...args]) => {
  const gateway = await keep(startGateway({ '/mcp': { backend: { command, args } } }));
  const listed = await modern(gateway.url(), 'tools/list');
  expect(listed.status).toBeGreaterThanOrEqual(500);
  expect(detailOf(gateway, listed)).toMatch(/exited with code|cannot be started/);
  await until(() => warnings(gateway).length > 0, 'the warning');
  expect(verdicts(gateway)).toEqual([]);
});
