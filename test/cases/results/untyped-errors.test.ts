import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';
import { detailOf } from '../../support/error-detail.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const TYPES = ['text/plain', 'text/html; charset=utf-8', undefined];

/** What is refused, and with what HTTP status clients of either era are told. */
const ERRORS = [
  { status: 400, error: { code: -32602, message: 'Unknown tool', data: { name: 'x' } }, modern: [200, 400] },
  { status: 404, error: { code: -32601, message: 'Method not found' }, modern: [404] },
  { status: 500, error: { code: -32603, message: 'The tool broke' }, modern: [200, 500] },
];

describe.each(CELLS)('%s: an error in JSON-RPC', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  describe.each(ERRORS)('with HTTP $status', ({ status, error, modern }) => {
    test.each(TYPES)('is read whatever type its body claims: %s', async (type) => {
      let calls = 0;
      rig.on('tools/call', ({ id, res }) => {
        calls++;
        res.writeHead(status, type === undefined ? {} : { 'content-type': type });
        res.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
        return undefined;
      });
      const answer = await rig.call('tools/call', { name: 'echo' }, { id: 3 });
      expect(answer.json).toMatchObject({ id: 3, error });
      expect(rig.modernClient ? modern : [200]).toContain(answer.status);
      expect(calls).toBe(1);
    });
  });

  test('of another kind of JSON has its words in the log', async () => {
    rig.on('tools/call', ({ sendText }) => void sendText('{"detail":"no room"}', 507) as undefined);
    const answer = await rig.call('tools/call', { name: 'echo' }, { id: 3 });
    expect(answer.status).toBe(502);
    expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_BACKEND_HTTP_ERROR' });
    expect(detailOf(rig.gateway, answer)).toContain('HTTP 507: {"detail":"no room"}');
  });
});

test.each(TYPES)(
  'a modern server that refuses the version in a body of type %s is known for one',
  async (type) => {
    let refused = 0;
    const rig = await startCell('MM', {
      script: {
        intercept: ({ json, res }) => {
          if (json?.method !== 'server/discover' || refused++ > 0) return false;
          const data = { supported: ['2026-07-28'], requested: '2026-07-28' };
          res.writeHead(400, type === undefined ? {} : { 'content-type': type });
          const error = { code: -32022, message: 'Unsupported protocol version', data };
          res.end(JSON.stringify({ jsonrpc: '2.0', id: json.id, error }));
          return true;
        },
      },
    });
    try {
      expect((await rig.call('tools/call', { name: 'echo' })).json).toHaveProperty('result');
      expect(rig.backend.received('initialize')).toHaveLength(0);
    } finally {
      await rig.close();
    }
  },
);
