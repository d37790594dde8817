import { afterEach, describe, expect, test } from 'vitest';
import { CELLS, startCell } from '../support/cells.js';
import { type Loose, sleep } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { Opened, TELLS_ALL } from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const NOTHING_TOLD = { tools: {}, prompts: {}, resources: {}, logging: {} };

async function shownTo(cell: (typeof CELLS)[number], script: Loose): Promise<Loose> {
  const rig = opened.add(await startCell(cell, { script: { capabilities: TELLS_ALL, ...script } }));
  if (rig.modernClient) return (await modern(rig.gateway.url(), 'server/discover')).json.result.capabilities;
  return (await rig.session()).initialize.json.result.capabilities;
}

describe.each(CELLS)('in the cell %s a client is shown', (cell) => {
  test('what the backend tells of', async () => {
    expect(await shownTo(cell, {})).toEqual(TELLS_ALL);
  });
});

describe.each(['LL', 'ML'] as const)(
  'in the cell %s a client is not promised what has no channel',
  (cell) => {
    const refusals: [string, (res: Loose) => void][] = [
      ['405', (res) => res.writeHead(405, { allow: 'POST' }).end()],
      ['404', (res) => res.writeHead(404).end('Cannot GET /mcp')],
      ['a page', (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello</p>')],
    ];
    test.each(refusals)('by a backend whose GET is %s', async (_what, get) => {
      const script = { on: { GET: ({ res }: Loose) => get(res) as undefined } };
      expect(await shownTo(cell, script)).toEqual(NOTHING_TOLD);
    });

    test('by a backend without sessions and streams', async () => {
      expect(await shownTo(cell, { sessions: false })).toEqual(NOTHING_TOLD);
    });
  },
);

test('a backend whose stream is there is not asked for it again for the handshake of each client', async () => {
  const rig = opened.add(await startCell('LL', { script: { capabilities: TELLS_ALL } }));
  for (let n = 0; n < 3; n += 1) await legacy(rig.gateway.url());
  expect(rig.backend.streams).toHaveLength(1);
});

test('a backend that promises nothing is not asked for a stream before its client asks for one', async () => {
  const rig = opened.add(await startCell('LL'));
  await rig.session();
  await sleep(50);
  expect(rig.backend.streams).toHaveLength(0);
});

test('a stream that takes long to begin does not keep clients waiting, nor take the promises away', async () => {
  const script = { capabilities: TELLS_ALL, on: { GET: () => undefined } };
  const rig = opened.add(await startCell('LL', { script }));
  const times: number[] = [];
  for (let n = 0; n < 2; n += 1) {
    const before = performance.now();
    const session = await legacy(rig.gateway.url());
    times.push(performance.now() - before);
    expect(session.initialize.json.result.capabilities).toEqual(TELLS_ALL);
  }
  expect(times[0]).toBeLessThan(3_000);
  expect(times[1]).toBeLessThan(900);
});
