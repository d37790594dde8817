// The fixture on tmcp: tmcp.mjs http|stdio PORT
import { setTimeout as delay } from 'node:timers/promises';
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { StdioTransport } from '@tmcp/transport-stdio';
import { McpServer } from 'tmcp';
import { z } from 'zod';
import { serveWeb } from './web.mjs';

const [transport, port] = process.argv.slice(2);
const say = (text) => ({ content: [{ type: 'text', text }] });
const server = new McpServer(
  { name: 'interop', version: '1.0.0', description: 'Interop' },
  {
    adapter: new ZodJsonSchemaAdapter(),
    capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } },
  },
);
const tool = (name, schema, run, more) =>
  server.tool({ name, description: name, ...(schema && { schema }), ...more }, run);
tool('add', z.object({ a: z.number(), b: z.number() }), ({ a, b }) => say(String(a + b)));
tool('fail', undefined, () => ({ ...say('It failed on purpose'), isError: true }));
tool('slow', undefined, async () => {
  for (let step = 1; step <= 3; step += 1) {
    server.progress(step, 3);
    await delay(50);
  }
  return say('slept');
});
tool(
  'ask',
  undefined,
  async () => {
    const { content } = await server.elicitation('Who?', z.object({ name: z.string() }));
    return say(`Hello ${content.name}`);
  },
  { replayable: true },
);
tool('touch', undefined, () => {
  server.changed('resource', 'note://today');
  return say('touched');
});
server.resource({ name: 'today', description: 'Today', uri: 'note://today' }, () => ({
  contents: [{ uri: 'note://today', mimeType: 'text/plain', text: 'Today' }],
}));

if (transport === 'stdio') new StdioTransport(server).listen();
else {
  const http = new HttpTransport(server, { path: '/mcp' });
  serveWeb((request) => http.respond(request), Number(port));
}
