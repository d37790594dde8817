// The fixture on the official TypeScript SDK, line 2: ts-sdk-2.mjs http|stdio PORT stateless|reject

import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createMcpHandler, inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const [transport, port, legacy] = process.argv.slice(2);
const URI = 'note://today';
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const say = (text) => ({ content: [{ type: 'text', text }] });
let announce;

function makeServer() {
  const server = new McpServer(
    { name: 'interop', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  );
  const tool = (name, inputSchema, run) => server.registerTool(name, { inputSchema }, run);
  tool('add', z.object({ a: z.number(), b: z.number() }), ({ a, b }) => say(String(a + b)));
  tool('fail', z.object({}), () => ({ ...say('It failed on purpose'), isError: true }));
  tool('slow', z.object({}), async (_args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= 3 && progressToken !== undefined; progress += 1) {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 3 },
      });
      await delay(50);
    }
    return say('slept');
  });
  tool('ask', z.object({}), (_args, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'name');
    if (answer.kind === 'elicit') return say(`Hello ${answer.content.name}`);
    const question = inputRequired.elicit({ mode: 'form', message: 'Who?', requestedSchema: FORM });
    return inputRequired({ inputRequests: { name: question } });
  });
  tool('touch', z.object({}), async () => {
    await announce(server);
    return say('touched');
  });
  server.registerResource('today', URI, { mimeType: 'text/plain' }, () => ({
    contents: [{ uri: URI, mimeType: 'text/plain', text: 'Today' }],
  }));
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  return server;
}

if (transport === 'stdio') {
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  announce = ({ server }) => server.sendResourceUpdated({ uri: URI });
  serveStdio(makeServer, { legacy });
} else {
  const { toNodeHandler } = await import('@modelcontextprotocol/node');
  const handler = createMcpHandler(makeServer, { legacy });
  announce = () => handler.notify.resourceUpdated(URI);
  const handle = toNodeHandler(handler);
  createServer((request, response) => void handle(request, response)).listen(Number(port), '127.0.0.1');
}
