import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { startModernBackend } from '../../support/misbehave.js';
import {
  hasPython,
  type Peer,
  PYTHON_NEEDED,
  startPythonOrders,
  startV1,
  startV2,
} from '../../support/peers/index.js';
import { type LegacySession, legacy, modern } from '../../support/raw.js';

const ORDER = { status: 'shipped', carrier: 'Delhivery', eta: '2026-08-05' };
const TEXT = JSON.stringify(ORDER);

/** The twin of the Python server in the modern era, answer for answer. */
const startTwin = () =>
  startModernBackend({
    on: {
      'tools/list': () => ({
        result: {
          resultType: 'complete',
          tools: [
            { name: 'order_status', inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
          ],
          ttlMs: 0,
          cacheScope: 'private',
        },
      }),
      'tools/call': ({ params }) => {
        const found = params.arguments.order_id === 'PT-1041';
        const text = found ? TEXT : `Order ${params.arguments.order_id} was not found.`;
        const content = [{ type: 'text', text }];
        return {
          result: found
            ? { resultType: 'complete', content, structuredContent: ORDER, isError: false }
            : { resultType: 'complete', content, isError: true },
        };
      },
    },
  });

const SERVERS: [string, boolean, () => Promise<Pick<Peer, 'url' | 'close'>>][] = [
  [`FastMCP 3.4.5${PYTHON_NEEDED}`, hasPython, startPythonOrders],
  ['its modern twin', true, startTwin],
  ['SDK 1.x', true, () => startV1()],
  ['SDK 2.x', true, () => startV2({ legacy: 'reject' })],
];

for (const [name, available, start] of SERVERS) {
  describe.skipIf(!available)(`orders of ${name}`, () => {
    let server: Pick<Peer, 'url' | 'close'>;
    let gateway: TestGateway;
    let session: LegacySession;
    beforeAll(async () => {
      server = await start();
      gateway = await startGateway({
        '/mcp': { backend: { url: server.url }, timeouts: { connect: '15s', start: '15s', probe: '15s' } },
      });
      session = await legacy(gateway.url());
    });
    afterAll(async () => {
      await gateway.close();
      await server.close();
    });
    const params = (order_id: string) => ({ name: 'order_status', arguments: { order_id } });

    test('an order is found by a legacy client', async () => {
      const { json, status } = await session.request('tools/call', params('PT-1041'), { id: 3 });
      expect(status).toBe(200);
      expect(json).toMatchObject({ jsonrpc: '2.0', id: 3 });
      const { content, structuredContent, isError, ...rest } = json.result;
      expect(content).toEqual([{ type: 'text', text: TEXT }]);
      expect(structuredContent).toEqual(ORDER);
      expect(isError).toBe(false);
      expect(rest).not.toHaveProperty('resultType');
    });

    test('an order that is not there is a result that says so', async () => {
      const { json } = await session.request('tools/call', params('PT-9999'), { id: 4 });
      expect(json.error).toBeUndefined();
      expect(json).toMatchObject({ id: 4, result: { isError: true } });
      expect(json.result.content[0]).toMatchObject({
        type: 'text',
        text: expect.stringContaining('Order PT-9999 was not found.'),
      });
      expect(json.result).not.toHaveProperty('resultType');
    });

    test('both are the same to a modern client', async () => {
      const found = (await modern(gateway.url(), 'tools/call', params('PT-1041'), { id: 3 })).json;
      expect(found).toMatchObject({
        id: 3,
        result: {
          resultType: 'complete',
          content: [{ type: 'text', text: TEXT }],
          structuredContent: ORDER,
          isError: false,
        },
      });
      const missing = (await modern(gateway.url(), 'tools/call', params('PT-9999'), { id: 4 })).json;
      expect(missing).toMatchObject({ id: 4, result: { resultType: 'complete', isError: true } });
    });
  });
}
