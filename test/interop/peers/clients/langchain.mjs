// @langchain/mcp-adapters.
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { exercise, failure, until, url } from './exercise.mjs';

let count = 0;
let updated;
const client = new MultiServerMCPClient({
  mcpServers: { interop: { transport: 'http', url } },
  onProgress: () => {
    count += 1;
  },
  onResourcesUpdated: (resource) => {
    updated = resource.uri;
  },
});
let tools;
const call = ({ tool, args }) => tools.find(({ name }) => name === tool).invoke(args);

await exercise(
  {
    async connect() {
      tools = await client.getTools();
    },
    list: async () => (await client.getTools()).map(({ name }) => name),
    call: async (words) => JSON.stringify(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => JSON.stringify(await client.readResource('interop', uri)),
    async progress(words) {
      count = 0;
      return { text: JSON.stringify(await call(words)), count };
    },
    async change({ uri, ...words }) {
      const session = await client.getClient('interop');
      await session.subscribeResource({ uri });
      return until(
        () => updated,
        () => call(words),
      );
    },
  },
  () => client.close(),
);
