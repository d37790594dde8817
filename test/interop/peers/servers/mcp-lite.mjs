// The fixture on mcp-lite: mcp-lite.mjs PORT [stateful]
import { setTimeout as delay } from 'node:timers/promises';
import {
  InMemoryClientRequestAdapter,
  InMemorySessionAdapter,
  McpServer,
  StreamableHttpTransport,
} from 'mcp-lite';
import { z } from 'zod';
import { serveWeb } from './web.mjs';

const [port, stateful] = process.argv.slice(2);
const say = (text) => ({ content: [{ type: 'text', text }] });
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const nothing = z.object({});
const server = new McpServer({
  name: 'interop',
  version: '1.0.0',
  schemaAdapter: (schema) => z.toJSONSchema(schema),
});
server.tool('add', {
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  handler: ({ a, b }) => say(String(a + b)),
});
server.tool('fail', {
  inputSchema: nothing,
  handler: () => ({ ...say('It failed on purpose'), isError: true }),
});
server.tool('slow', {
  inputSchema: nothing,
  async handler(_args, context) {
    for (let progress = 1; progress <= 3; progress += 1) {
      await context.progress?.({ progress, total: 3 });
      await delay(50);
    }
    return say('slept');
  },
});
server.tool('ask', {
  inputSchema: nothing,
  async handler(_args, context) {
    const { content } = await context.elicit({ message: 'Who?', schema: FORM });
    return say(`Hello ${content.name}`);
  },
});
server.tool('touch', { inputSchema: nothing, handler: () => say('touched') });
server.resource('note://today', { name: 'today', mimeType: 'text/plain' }, () => ({
  contents: [{ uri: 'note://today', type: 'text', mimeType: 'text/plain', text: 'Today' }],
}));

const transport = new StreamableHttpTransport(
  stateful
    ? {
        sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 1024 }),
        clientRequestAdapter: new InMemoryClientRequestAdapter({ defaultTimeoutMs: 30_000 }),
      }
    : {},
);
serveWeb(transport.bind(server), Number(port));
