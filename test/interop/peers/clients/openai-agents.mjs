// The MCP client of @openai/agents.
import { MCPServerStreamableHttp } from '@openai/agents';
import { exercise, failure, text, url } from './exercise.mjs';

const server = new MCPServerStreamableHttp({ url, name: 'interop' });
const call = ({ tool, args }) => server.callToolResult(tool, args);

await exercise(
  {
    connect: () => server.connect(),
    list: async () => (await server.listTools()).map(({ name }) => name),
    call: async (words) => text(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => (await server.readResource(uri)).contents[0].text,
  },
  () => server.close(),
);
