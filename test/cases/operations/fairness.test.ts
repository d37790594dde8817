import { describe, expect, test } from 'vitest';
import { CELLS, type Cell, type Rig, startCell } from '../../support/cells.js';
import { startGateway } from '../../support/gateway.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';
import { legacy, modern, type RawResponse } from '../../support/raw.js';

const GREEDY = { authorization: 'Bearer greedy' };
const OTHER = { authorization: 'Bearer other' };

/** Sends a call of a principal in the client's era. */
async function caller(rig: Rig, cell: Cell, headers: Record<string, string>) {
  if (cell[0] === 'M') {
    return (params: Loose): Promise<RawResponse> =>
      modern(rig.gateway.url(), 'tools/call', params, { headers });
  }
  const session = await legacy(rig.gateway.url(), { headers });
  return (params: Loose) =>
    session.request('tools/call', params, { headers: { ...session.headers, ...headers } });
}

describe.each(CELLS)('%s', (cell) => {
  test('a principal that has half of all requests in flight gets no more, and others do', async () => {
    const held: (() => void)[] = [];
    const rig = await startCell(cell, { config: { limits: { exchanges: 4 } } });
    try {
      rig.on('tools/call', ({ params }) => {
        if (params.name !== 'slow') return rig.result('{"content":[]}');
        return new Promise((resolve) => held.push(() => resolve(rig.result('{"content":[]}'))));
      });
      const greedy = await caller(rig, cell, GREEDY);
      const other = await caller(rig, cell, OTHER);
      const slow = [greedy({ name: 'slow' }), greedy({ name: 'slow' })];
      await until(() => held.length === 2, 'two calls at the backend');
      const refused = await greedy({ name: 'quick' });
      expect(refused.json.error.message).toContain('limit of 2 requests of one caller');
      expect((await other({ name: 'quick' })).json.result).toBeDefined();
      for (const release of held) release();
      for (const { json } of await Promise.all(slow)) expect(json.result).toBeDefined();
      expect((await greedy({ name: 'quick' })).json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  });
});

describe.each(['legacy', 'modern'] as const)('hanging handshakes of one caller at a %s backend', (era) => {
  test('are not the answer to another', async () => {
    const start = era === 'legacy' ? startLegacyBackend : startModernBackend;
    // Answers nothing that comes with the credential of one caller.
    const backend = await start({
      intercept: ({ headers }) => headers.authorization === GREEDY.authorization,
    });
    const gateway = await startGateway({
      '/mcp': { backend: { url: backend.url, era }, timeouts: { connect: '300ms', start: '300ms' } },
    });
    try {
      const hung = Array.from({ length: 6 }, () =>
        legacy(gateway.url(), { headers: GREEDY }).catch(() => {}),
      );
      await Promise.all(hung);
      const session = await legacy(gateway.url(), { headers: OTHER });
      expect(session.initialize.json.error).toBeUndefined();
      expect(session.initialize.json.result).toBeDefined();
    } finally {
      await gateway.close();
      await backend.close();
    }
  });
});
