// The fixture on mcp-use: mcp-use.mjs PORT
import { setTimeout as delay } from 'node:timers/promises';
import { inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { MCPServer } from 'mcp-use';
import { z } from 'zod';

const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const say = (text) => ({ content: [{ type: 'text', text }] });
const nothing = z.object({});
const server = new MCPServer({ name: 'interop', version: '1.0.0' });
const tool = (name, inputSchema, run) => server.tool({ name, description: name, inputSchema }, run);

tool('add', z.object({ a: z.number(), b: z.number() }), ({ a, b }) => say(String(a + b)));
tool('fail', nothing, () => ({ ...say('It failed on purpose'), isError: true }));
tool('slow', nothing, async (_args, context) => {
  for (let step = 1; step <= 3; step += 1) {
    await context.reportProgress(step, 3);
    await delay(50);
  }
  return say('slept');
});
tool('ask', nothing, (_args, { inputResponses }) => {
  const answer = inputResponse(inputResponses, 'name');
  if (answer.kind === 'elicit') return say(`Hello ${answer.content.name}`);
  const question = inputRequired.elicit({ mode: 'form', message: 'Who?', requestedSchema: FORM });
  return inputRequired({ inputRequests: { name: question } });
});
tool('touch', nothing, async () => {
  await server.notifyResourceUpdated('note://today');
  return say('touched');
});
server.resource({ name: 'today', uri: 'note://today', mimeType: 'text/plain' }, () => ({
  contents: [{ uri: 'note://today', mimeType: 'text/plain', text: 'Today' }],
}));

await server.listen(Number(process.argv[2]));
