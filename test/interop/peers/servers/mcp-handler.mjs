// The fixture on mcp-handler: mcp-handler.mjs PORT
import { setTimeout as delay } from 'node:timers/promises';
import { inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { createMcpHandler } from 'mcp-handler';
import { z } from 'zod';
import { serveWeb } from './web.mjs';

const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const say = (text) => ({ content: [{ type: 'text', text }] });
const nothing = z.object({});
const handler = createMcpHandler((server) => {
  const tool = (name, inputSchema, run) => server.registerTool(name, { inputSchema }, run);
  tool('add', z.object({ a: z.number(), b: z.number() }), ({ a, b }) => say(String(a + b)));
  tool('fail', nothing, () => ({ ...say('It failed on purpose'), isError: true }));
  tool('slow', nothing, async (_args, { mcpReq }) => {
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
  tool('ask', nothing, (_args, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'name');
    if (answer.kind === 'elicit') return say(`Hello ${answer.content.name}`);
    const question = inputRequired.elicit({ mode: 'form', message: 'Who?', requestedSchema: FORM });
    return inputRequired({ inputRequests: { name: question } });
  });
  tool('touch', nothing, () => say('touched'));
  server.registerResource('today', 'note://today', { mimeType: 'text/plain' }, () => ({
    contents: [{ uri: 'note://today', mimeType: 'text/plain', text: 'Today' }],
  }));
});
serveWeb(handler, Number(process.argv[2]));
