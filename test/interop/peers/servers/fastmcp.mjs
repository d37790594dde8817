// The fixture on fastmcp: fastmcp.mjs httpStream|stdio PORT
import { setTimeout as delay } from 'node:timers/promises';
import { FastMCP, UserError } from 'fastmcp';
import { z } from 'zod';

const [transportType, port] = process.argv.slice(2);
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const server = new FastMCP({ name: 'interop', version: '1.0.0' });
const tool = (name, parameters, execute) => server.addTool({ name, description: name, parameters, execute });
const nothing = z.object({});

tool('add', z.object({ a: z.number(), b: z.number() }), async ({ a, b }) => String(a + b));
tool('fail', nothing, async () => {
  throw new UserError('It failed on purpose');
});
tool('slow', nothing, async (_args, { reportProgress }) => {
  for (let progress = 1; progress <= 3; progress += 1) {
    await reportProgress({ progress, total: 3 });
    await delay(50);
  }
  return 'slept';
});
tool('ask', nothing, async (_args, { elicit }) => {
  const { content } = await elicit({ message: 'Who?', requestedSchema: FORM });
  return `Hello ${content.name}`;
});
tool('touch', nothing, async () => {
  await server.sendResourceUpdated('note://today');
  return 'touched';
});
server.addResource({
  uri: 'note://today',
  name: 'today',
  mimeType: 'text/plain',
  load: async () => ({ text: 'Today' }),
});

await server.start(
  transportType === 'stdio'
    ? { transportType }
    : { transportType, httpStream: { port: Number(port), host: '127.0.0.1' } },
);
