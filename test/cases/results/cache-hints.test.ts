import { expect, test } from 'vitest';
import { CELLS, raw, startCell } from '../../support/cells.js';
import { legacy, modern } from '../../support/raw.js';

const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });
const PUBLIC = '"resultType":"complete","ttlMs":60000,"cacheScope":"public"';

test.each(['MM', 'ML'] as const)(
  '%s: what one user may see is never offered to a shared cache',
  async (cell) => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/list', ({ headers }) => {
        const user = String(headers.authorization).replace('Bearer ', '');
        const tool = `{"name":"${user}","inputSchema":{"type":"object"}}`;
        return { result: raw(`{${PUBLIC},"tools":[${tool}]}`) };
      });
      for (const user of ['ann', 'bob', 'ann']) {
        const { json, headers } = await rig.call('tools/list', {}, as(user));
        expect(json.result.tools[0].name).toBe(user);
        expect(json.result.cacheScope).toBe('private');
        expect(headers['cache-control']).toContain('no-store');
      }
      // Nobody's credential made this one what it is.
      const open = await rig.call('tools/list');
      expect(open.json.result.cacheScope).toBe(cell === 'MM' ? 'public' : 'private');
      expect(open.headers['cache-control']).toContain('no-store');
    } finally {
      await rig.close();
    }
  },
);

test.each(CELLS)('%s: no HTTP cache keeps an answer, be it JSON, a stream or an error', async (cell) => {
  const rig = await startCell(cell);
  try {
    for (const accept of ['application/json, text/event-stream', 'text/event-stream', 'application/json']) {
      for (const method of ['tools/list', 'no/such']) {
        const { headers } = await rig.call(method, {}, { headers: { accept } });
        expect(headers['cache-control']).toContain('no-store');
      }
    }
    const refused = await modern(rig.gateway.url(), 'tools/list', {}, { version: '1900-01-01' });
    expect(refused.headers['cache-control']).toContain('no-store');
  } finally {
    await rig.close();
  }
});

test.each(['MM', 'ML'] as const)(
  '%s: a description of the backend is private wherever it may differ by user',
  async (cell) => {
    const rig = await startCell(cell);
    try {
      if (cell === 'MM') {
        const discovered = `{${PUBLIC},"supportedVersions":["2026-07-28"],"capabilities":{}}`;
        rig.on('server/discover', () => ({ result: raw(discovered) }));
      }
      const { json } = await rig.call('server/discover', {}, as('ann'));
      expect(json.result.cacheScope).toBe('private');
    } finally {
      await rig.close();
    }
  },
);

test('headers of a call are read from the list of the user who calls', async () => {
  const rig = await startCell('LM');
  try {
    const lists: string[] = [];
    rig.on('tools/list', ({ headers }) => {
      lists.push(String(headers.authorization));
      const header = headers.authorization === 'Bearer ann' ? 'Ann' : 'Bob';
      const schema = `{"type":"object","properties":{"v":{"type":"string","x-mcp-header":"${header}"}}}`;
      return { result: raw(`{${PUBLIC},"tools":[{"name":"t","inputSchema":${schema}}]}`) };
    });
    for (const user of ['ann', 'bob']) {
      const session = await legacy(rig.gateway.url(), as(user));
      await session.request('tools/call', { name: 't', arguments: { v: user } });
      const headers = rig.backend.received('tools/call').at(-1)?.headers;
      expect(headers?.['mcp-param-ann']).toBe(user === 'ann' ? 'ann' : undefined);
      expect(headers?.['mcp-param-bob']).toBe(user === 'bob' ? 'bob' : undefined);
    }
    expect(lists).toEqual(['Bearer ann', 'Bearer bob']);
  } finally {
    await rig.close();
  }
});
