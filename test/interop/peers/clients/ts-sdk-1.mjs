// The official TypeScript SDK, lines 1.0 to 1.32. `mode` is the transport: http, sse, or stdio to mcp-remote with its
// flags.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { exercise, failure, filled, mode, text, until, url } from './exercise.mjs';

const asks = types.ElicitRequestSchema !== undefined;
const client = new Client(
  { name: 'interop', version: '1.0.0' },
  { capabilities: asks ? { elicitation: {} } : {} },
);
if (asks) {
  client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => ({
    action: 'accept',
    content: filled(params.requestedSchema),
  }));
}
let updated;
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => {
  updated = params.uri;
});

async function openTransport() {
  if (mode === 'sse') {
    const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
    globalThis.EventSource ??= (await import('eventsource').catch(() => ({}))).default;
    return new SSEClientTransport(new URL(url));
  }
  if (mode.startsWith('mcp-remote')) {
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const proxy = new URL('../node_modules/mcp-remote/dist/proxy.js', import.meta.url).pathname;
    const flags = ['--allow-http', '--transport', 'http-only', ...mode.split(' ').slice(1)];
    return new StdioClientTransport({
      command: process.execPath,
      args: [proxy, url, ...flags],
      env: process.env,
      stderr: 'inherit',
    });
  }
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  return new StreamableHTTPClientTransport(new URL(url));
}

const call = ({ tool, args }, options) =>
  client.callTool({ name: tool, arguments: args }, types.CallToolResultSchema, options);

await exercise(
  {
    async connect() {
      const transport = await openTransport();
      await client.connect(transport);
      return transport.protocolVersion;
    },
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (words) => text(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => (await client.readResource({ uri })).contents[0].text,
    async progress(words) {
      let count = 0;
      const result = await call(words, { onprogress: () => (count += 1) });
      return { count, text: text(result) };
    },
    question: async (words) => text(await call(words)),
    async change({ uri, ...words }) {
      await client.subscribeResource({ uri });
      return until(
        () => updated,
        () => call(words),
      );
    },
  },
  () => client.close(),
);
