import { expect, test } from 'vitest';
import { until } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { type Rig, startRig, textOf } from './rig.js';

const DISCOVER = 'server/discover';
const era = async ({ gateway }: Rig) => {
  await until(() => gateway.logs.some(({ msg }) => msg === 'era of the backend'), 'a verdict');
  return gateway.logs.filter(({ msg }) => msg === 'era of the backend').at(-1);
};
const pid = async (url: string) =>
  textOf((await modern(url, 'tools/call', { name: 'pid', arguments: {} })).json);

test('the era is probed on a separate process, which is ended afterwards', async () => {
  const rig = await startRig({ route: { timeouts: { probe: '10s' } } });
  expect(await era(rig)).toMatchObject({
    era: 'legacy',
    reason: expect.stringContaining('Method not found'),
  });
  const [probed] = rig.started();
  expect(await pid(rig.url)).not.toBe(String(probed));
  await until(() => rig.running().length === 1, 'the probed process to end');
  expect(rig.received(DISCOVER)).toHaveLength(1);
});

test('a modern server is detected', async () => {
  const rig = await startRig({ server: { era: 'modern' } });
  expect(await era(rig)).toMatchObject({ era: 'modern', reason: 'supports 2026-07-28' });
  await pid(rig.url);
  expect(rig.received('initialize')).toEqual([]);
});

test('a server that exits on server/discover is detected as legacy, and serves', async () => {
  const rig = await startRig({ server: { exitAt: { [DISCOVER]: 1 } } });
  expect(await era(rig)).toMatchObject({ era: 'legacy', reason: 'it exited with code 1' });
  expect(Number(await pid(rig.url))).toBeGreaterThan(0);
  expect((await legacy(rig.url)).initialize.status).toBe(200);
});

test('a server that answers initialize but not server/discover is detected as legacy', async () => {
  const rig = await startRig({ server: { silentOn: [DISCOVER] }, route: { timeouts: { probe: '200ms' } } });
  expect(await era(rig)).toMatchObject({ era: 'legacy', reason: 'no answer to server/discover' });
  expect(Number(await pid(rig.url))).toBeGreaterThan(0);
});

test('a server that hangs on server/discover is detected as legacy after the start timeout', async () => {
  const rig = await startRig({
    server: { deafOn: DISCOVER },
    route: { timeouts: { probe: '100ms', start: '800ms' } },
  });
  expect(await era(rig)).toMatchObject({ era: 'legacy', reason: 'no answer to server/discover' });
  expect(Number(await pid(rig.url))).toBeGreaterThan(0);
});

test('a pinned era is not probed', async () => {
  const rig = await startRig({ backend: { era: '2025-06-18' } });
  await pid(rig.url);
  expect(rig.started()).toHaveLength(1);
  expect(rig.received(DISCOVER)).toEqual([]);
  expect(rig.received('initialize')[0]?.params.protocolVersion).toBe('2025-06-18');
});

test('a server that was updated to the other era is detected again', async () => {
  const rig = await startRig({ server: { exitAt: { initialize: 1 }, era: 'modern' } });
  expect(await era(rig)).toMatchObject({ era: 'modern' });
  expect(Number(await pid(rig.url))).toBeGreaterThan(0);
});
