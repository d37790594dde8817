import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type BackendExchange, startLegacyBackend } from '../../support/misbehave.js';
import { type Loose, listen } from '../../support/net.js';
import { legacy, modern } from '../../support/raw.js';

const keep = keeper();

const echo = { name: 'echo', arguments: { a: 1 } };
const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });

/** How servers with one session for the whole process refuse another. */
const REFUSALS: Record<string, (exchange: BackendExchange) => void> = {
  '400 -32600': ({ sendJson, json }) =>
    sendJson(
      {
        jsonrpc: '2.0',
        id: json.id,
        error: { code: -32600, message: 'Invalid Request: Server already initialized' },
      },
      400,
    ),
  '200 -32000': ({ sendJson, json }) =>
    sendJson({ jsonrpc: '2.0', id: json.id, error: { code: -32000, message: 'Already initialised' } }),
  '409 in plain text': ({ sendText }) => sendText('Only one client connection is allowed', 409),
  '500 in words': ({ sendText }) => sendText('Error: Already connected to a transport', 500),
};

describe.each(Object.entries(REFUSALS))(
  'a backend with one session for all, that refuses others with %s',
  (_name, refuse) => {
    const start = () => {
      let handshakes = 0;
      return startLegacyBackend({
        intercept: (exchange) => {
          if (exchange.json?.method !== 'initialize' || ++handshakes === 1) return false;
          refuse(exchange);
          return true;
        },
      });
    };

    test('serves the first client; the others get the cause, with one handshake for each', async () => {
      const backend = await keep(start());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const first = await modern(gateway.url(), 'tools/call', echo, as('u1'));
      expect(first.json.result.structuredContent).toEqual({ a: 1 });
      for (let i = 1; i <= 3; i++) {
        const { status, json } = await modern(gateway.url(), 'tools/call', echo, { ...as('u2'), id: i });
        expect(status).toBe(502);
        expect(json).toMatchObject({ id: i, error: { code: -32603 } });
        expect(json.error.message).toMatch(/serves one session at a time, and has one already/);
        expect(backend.received('initialize')).toHaveLength(1 + i);
      }
      const { initialize } = await legacy(gateway.url());
      expect(initialize.status).toBe(502);
      expect(initialize.json.error.message).toMatch(/serves one session at a time/);
      expect(backend.received('initialize')).toHaveLength(5);
      // The client that has the session keeps it.
      const again = await modern(gateway.url(), 'tools/call', echo, as('u1'));
      expect(again.json.result.structuredContent).toEqual({ a: 1 });
    });

    test('serves one legacy client, and tells the next', async () => {
      const backend = await keep(start());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const first = await legacy(gateway.url());
      const { initialize } = await legacy(gateway.url());
      expect(initialize.status).toBe(502);
      expect((await first.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
    });
  },
);

test('a real server with one transport for all is told from one that is broken', async () => {
  const mcp = new McpServer({ name: 'global', version: '1.0.0' });
  mcp.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hi' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  await mcp.connect(transport as Loose);
  const host = await listen((request, response) => void transport.handleRequest(request, response));
  await keep({
    close: async () => {
      await mcp.close();
      await host.stop();
    },
  });
  const gateway = await keep(startGateway({ '/mcp': `${host.origin}/mcp` }));
  const hello = (user: string) => modern(gateway.url(), 'tools/call', { name: 'hello' }, as(user));
  expect((await hello('u1')).json.result.content[0].text).toBe('hi');
  const refused = await hello('u2');
  expect(refused.json.error.data).toEqual({ eragate: 'ERAGATE_ONE_SESSION' });
  expect(detailOf(gateway, refused)).toMatch(/serves one session at a time .*already initialized/);
  expect((await hello('u1')).json.result.content[0].text).toBe('hi');
});
