import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type Script, startModernBackend } from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';
import { legacy, MODERN, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const said = { capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
const SESSION = { 'mcp-session-id': 'given-to-everyone' };

/** What servers of the modern era say to `initialize` that handle it without knowing its era. */
const ANSWERS: Record<string, Loose> = {
  'with its own version': { ...said, protocolVersion: MODERN },
  'with its own version, dressed as of its era': { ...said, resultType: 'complete', protocolVersion: MODERN },
  'with a version that is to come': { ...said, protocolVersion: '2027-03-01' },
  'without a version': said,
  'with nothing': { resultType: 'complete' },
  'with a version that is none': { ...said, protocolVersion: 'latest' },
};

/** Gives a session id to every client, also where it means nothing. */
const answering = (result: Loose): Script => ({
  on: {
    initialize: ({ sendJson, id }) =>
      void sendJson({ jsonrpc: '2.0', id, result }, 200, SESSION) as undefined,
  },
});

test.each(Object.keys(ANSWERS))(
  'a modern backend that answers initialize %s is called in its own era',
  async (name) => {
    const backend = await keep(startModernBackend(answering(ANSWERS[name])));
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (let n = 0; n < 2; n++) {
      const client = await legacy(gateway.url(), { capabilities: { elicitation: {} } });
      expect(client.initialize.json.result).toMatchObject({
        protocolVersion: '2025-11-25',
        serverInfo: { name: 'scripted-modern' },
      });
      for (const method of ['tools/list', 'tools/call'])
        expect((await client.request(method, { name: 'echo' })).json).toHaveProperty('result');
    }
    // One handshake finds out, for all clients.
    expect(backend.received('initialize')).toHaveLength(1);
    for (const { headers } of ['tools/list', 'tools/call'].flatMap(backend.received)) {
      expect(headers['mcp-protocol-version']).toBe(MODERN);
      expect(headers['mcp-session-id']).toBeUndefined();
    }
  },
);

test('a modern backend that takes numbers alone for ids is found to be modern', async () => {
  const backend = await keep(
    startModernBackend({
      intercept: ({ json, sendJson }) => {
        if (json?.id === undefined || typeof json.id === 'number') return false;
        const error = { code: -32600, message: 'Invalid Request: id must be an integer' };
        sendJson({ jsonrpc: '2.0', id: null, error }, 400);
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  expect((await modern(gateway.url(), 'tools/call', { name: 'echo' }, { id: 7 })).json).toHaveProperty(
    'result',
  );
  expect(gateway.logs.find(({ msg }) => msg === 'era of the backend')).toMatchObject({ era: 'modern' });
  expect(backend.received('initialize')).toHaveLength(0);
});
