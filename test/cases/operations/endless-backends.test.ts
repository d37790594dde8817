import { describe, expect, test } from 'vitest';
import { CELLS, startCell } from '../../support/cells.js';
import { until } from '../../support/net.js';
import { send } from '../../support/raw.js';

const CHUNK = 64 * 1024;
const BODIES: Record<string, { type: string; status: number; chunk: string; limit: string }> = {
  'text that does not end': { type: 'text/plain', status: 200, chunk: 'x'.repeat(CHUNK), limit: '64MiB' },
  'an error page that does not end': {
    type: 'text/html',
    status: 500,
    chunk: '<p>'.repeat(CHUNK),
    limit: '64MiB',
  },
  'an event stream of comments alone': {
    type: 'text/event-stream',
    status: 200,
    chunk: ':\n\n'.repeat(CHUNK),
    limit: '1MiB',
  },
  'an event stream of empty events': {
    type: 'text/event-stream',
    status: 200,
    chunk: 'id: 1\n\n'.repeat(CHUNK),
    limit: '1MiB',
  },
  'an event stream of other events': {
    type: 'text/event-stream',
    status: 200,
    chunk: 'event: other\ndata: x\n\n'.repeat(CHUNK),
    limit: '1MiB',
  },
  'an event that does not end': {
    type: 'text/event-stream',
    status: 200,
    chunk: `data: ${'x'.repeat(CHUNK)}`,
    limit: '1MiB',
  },
  'JSON that does not end': {
    type: 'application/json',
    status: 200,
    chunk: ' '.repeat(CHUNK),
    limit: '1MiB',
  },
};

describe.each(CELLS)('%s', (cell) => {
  test.each(Object.entries(BODIES))('a server that sends %s is cut off', async (_what, body) => {
    const rig = await startCell(cell, { config: { limits: { result: body.limit } } });
    let sent = 0;
    let closed = false;
    try {
      rig.on('tools/call', ({ res }) => {
        res.writeHead(body.status, { 'content-type': body.type }).on('close', () => {
          closed = true;
        });
        const more = (): void => {
          if (closed) return;
          sent += body.chunk.length;
          if (res.write(body.chunk)) setImmediate(more);
          else res.once('drain', more);
        };
        more();
        return undefined;
      });
      const { json } = await rig.call('tools/call', { name: 'echo' });
      expect(json.error).toBeDefined();
      await until(() => closed, 'the end of the connection');
      expect(sent).toBeLessThan(16 * 1024 * 1024);
      rig.answer('tools/call', '{"content":[]}');
      expect((await rig.call('tools/call', { name: 'echo' })).json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  });
});

describe('notifications of a client that its server does not accept', () => {
  test('open a few connections, wait up to a bound, and are then refused', async () => {
    let open = 0;
    let most = 0;
    const rig = await startCell('LL');
    try {
      rig.on('notifications/roots/list_changed', ({ res }) => {
        most = Math.max(most, ++open);
        res.on('close', () => open--);
        return undefined;
      });
      const { headers } = await rig.session();
      // Opens the session at the server.
      await rig.call('tools/list');
      const body = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}';
      const statuses = await Promise.all(
        Array.from({ length: 1_500 }, async () => (await send(rig.gateway.url(), { headers, body })).status),
      );
      expect(new Set(statuses)).toEqual(new Set([202, 503]));
      expect(statuses.filter((status) => status === 202).length).toBeLessThan(1_100);
      expect(most).toBeLessThanOrEqual(4);
      expect((await rig.call('tools/list')).json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  });

  test('all arrive where it accepts them', async () => {
    const rig = await startCell('LL');
    try {
      const { headers } = await rig.session();
      await rig.call('tools/list');
      for (let i = 0; i < 20; i++) {
        const body = `{"jsonrpc":"2.0","method":"notifications/n","params":{"i":${i}}}`;
        expect((await send(rig.gateway.url(), { headers, body })).status).toBe(202);
      }
      await until(() => rig.backend.received('notifications/n').length === 20, 'all of them');
    } finally {
      await rig.close();
    }
  });
});
