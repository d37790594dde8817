// @mastra/mcp.
import { MCPClient } from '@mastra/mcp';
import { exercise, failure, filled, text, until, url } from './exercise.mjs';

const mcp = new MCPClient({
  id: 'interop',
  servers: {
    interop: {
      url: new URL(url),
      enableProgressTracking: true,
      inputRequests: async ({ params }) => ({ action: 'accept', content: filled(params.requestedSchema) }),
    },
  },
});
let tools;
const call = async ({ tool, args }) => {
  const result = await tools[`interop_${tool}`].execute(args, {});
  return typeof result === 'object' && result !== null && 'content' in result
    ? result
    : { content: [{ text: JSON.stringify(result) }] };
};

await exercise(
  {
    async connect() {
      tools = await mcp.listTools();
    },
    list: async () => Object.keys(await mcp.listTools()).map((name) => name.replace(/^interop_/, '')),
    call: async (words) => text(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => (await mcp.resources.read('interop', uri)).contents[0].text,
    async progress(words) {
      let count = 0;
      await mcp.progress.onUpdate('interop', () => {
        count += 1;
      });
      return { text: text(await call(words)), count };
    },
    question: async (words) => text(await call(words)),
    async change({ uri, ...words }) {
      let updated;
      await mcp.resources.onUpdated('interop', (params) => {
        updated = params.uri;
      });
      await mcp.resources.subscribe('interop', uri);
      return until(
        () => updated,
        () => call(words),
      );
    },
  },
  () => mcp.disconnect(),
);
