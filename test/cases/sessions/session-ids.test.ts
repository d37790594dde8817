import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startBackend } from '../../support/misbehave.js';
import { legacy, modern } from '../../support/raw.js';

const keep = keeper();

const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

/** A server that gives out one id, in as many headers as it takes, and takes nothing without it but handshakes. */
const startServer = (given: string | string[], id: string) =>
  startBackend(({ json, method, headers, res, sendJson }) => {
    if (json?.method === 'initialize') {
      res.setHeader('mcp-session-id', given);
      sendJson({ jsonrpc: '2.0', id: json.id, result });
    } else if (headers['mcp-session-id'] !== id) res.writeHead(400).end('No valid session ID provided');
    else if (method === 'GET') res.writeHead(405).end();
    else if (json?.id === undefined) res.writeHead(202).end();
    else sendJson({ jsonrpc: '2.0', id: json.id, result: { content: [] } });
  });

test.each<[string, string | string[], string]>([
  ['that comes in two headers, since a proxy repeats it', ['abc', 'abc'], 'abc'],
  [
    'with all that a header can hold',
    '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~ a',
    '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~ a',
  ],
  ['that is a word of its own in scripts', 'undefined', 'undefined'],
  ['of four thousand characters', 'x'.repeat(4_000), 'x'.repeat(4_000)],
])('a session id of a backend %s comes back as it was', async (_what, given, id) => {
  const backend = await keep(startServer(given, id));
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, era: 'legacy' } } }));
  const { json } = await modern(gateway.url(), 'tools/call', { name: 'echo' });
  expect(json.result).toMatchObject({ content: [] });
  const client = await legacy(gateway.url());
  expect(client.id).not.toBe(id);
  expect((await client.request('tools/call', { name: 'echo' })).json.result).toEqual({ content: [] });
  expect((await client.delete()).status).toBe(200);
  const ended = () => backend.requests.find(({ method }) => method === 'DELETE')?.headers['mcp-session-id'];
  await expect.poll(ended).toBe(id);
  expect(backend.received('initialize')).toHaveLength(2);
});
