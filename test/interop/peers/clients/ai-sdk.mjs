// @ai-sdk/mcp, an implementation of its own. `mode` is auto, or legacy without discovery.
import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp';
import { exercise, failure, filled, mode, text, url } from './exercise.mjs';

let client;
const call = ({ tool, args }) => client.callTool({ name: tool, arguments: args });

await exercise(
  {
    async connect() {
      client = await createMCPClient({
        transport: { type: 'http', url },
        capabilities: { elicitation: {} },
        protocolVersionDiscovery: mode === 'auto',
      });
      client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => ({
        action: 'accept',
        content: filled(params.requestedSchema),
      }));
      return client.initializeResult.protocolVersion;
    },
    list: async () => Object.keys(await client.tools()),
    call: async (words) => text(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => (await client.readResource({ uri })).contents[0].text,
    question: async (words) => text(await call(words)),
  },
  () => client.close(),
);
