import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';
import { legacy, MODERN, modern } from '../../support/raw.js';

const keep = keeper();

/** Tools as servers have them, some of which need translation; each name says what it returns. */
const TOOLS: Loose[] = [
  { name: 'plain', inputSchema: { type: 'object' } },
  { name: '天气', description: 'a name outside ASCII', inputSchema: { type: 'object' } },
  { name: ' padded ', inputSchema: { type: 'object' } },
  { name: '=?base64?abc?=', inputSchema: { type: 'object' } },
  {
    name: 'list_out',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'array', items: { type: 'number' } },
  },
  { name: 'object_out', inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
  {
    name: 'by_region',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
  },
  {
    name: 'broken_header',
    inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'not a name' } } },
  },
  { name: 'task', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } },
];

const on = {
  'tools/call': ({ params }: Loose) => ({
    result: { content: [{ type: 'text', text: params.name }], structuredContent: params.arguments },
  }),
};
const onModern = {
  'tools/call': (step: Loose) => ({ result: { resultType: 'complete', ...on['tools/call'](step).result } }),
};

/** Lists and calls as a client of one era. */
type Ask = (method: string, params?: Loose) => Promise<Loose>;
const CLIENTS: Record<string, (url: string) => Promise<Ask>> = {
  modern: async (url) => async (method, params) => {
    const headers = params?.name === 'by_region' ? { 'mcp-param-region': params.arguments.region } : {};
    return (await modern(url, method, params, { headers })).json;
  },
  legacy: async (url) => {
    const session = await legacy(url);
    return async (method, params) => (await session.request(method, params)).json;
  },
};
const BACKENDS: Record<string, () => ReturnType<typeof startLegacyBackend>> = {
  legacy: () => startLegacyBackend({ tools: TOOLS, on }),
  modern: () => startModernBackend({ tools: TOOLS, on: onModern }),
};
const CELLS = Object.keys(CLIENTS).flatMap((client) =>
  Object.keys(BACKENDS).map((backend) => [client, backend]),
);

test.each(CELLS)(
  'what a %s client is shown of a %s backend it can call, each tool by its name',
  async (client, era) => {
    const backend = await keep((BACKENDS[era as string] as () => ReturnType<typeof startLegacyBackend>)());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const ask = await (CLIENTS[client as string] as (url: string) => Promise<Ask>)(gateway.url());
    const listed = (await ask('tools/list')).result.tools;
    expect(listed.length).toBeGreaterThanOrEqual(TOOLS.length - 1);
    for (const { name } of listed) {
      const { result, error } = await ask('tools/call', { name, arguments: { region: 'eu', a: 'b' } });
      expect(error, name).toBeUndefined();
      expect(result.content[0].text).toBe(name);
    }
    expect(backend.received('tools/call').map(({ json }) => json.params.name)).toEqual(
      listed.map(({ name }: Loose) => name),
    );
    if (era === 'modern') {
      for (const { headers, json } of backend.received('tools/call')) {
        expect(headers['mcp-protocol-version']).toBe(MODERN);
        expect(json.params._meta['io.modelcontextprotocol/protocolVersion']).toBe(MODERN);
      }
    }
  },
);
