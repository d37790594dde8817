// The official TypeScript SDK, line 2. `mode` is how it settles the era: legacy, auto or pin.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { exercise, failure, filled, mode, text, until, url } from './exercise.mjs';

const client = new Client(
  { name: 'interop', version: '1.0.0' },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode },
  },
);
client.setRequestHandler('elicitation/create', async ({ params }) => ({
  action: 'accept',
  content: filled(params.requestedSchema),
}));
let updated;
client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
  updated = params.uri;
});

const call = ({ tool, args }, options) => client.callTool({ name: tool, arguments: args }, options);

await exercise(
  {
    async connect() {
      await client.connect(new StreamableHTTPClientTransport(new URL(url)));
      return client.getProtocolEra();
    },
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (words) => text(await call(words)),
    error: (words) => failure(() => call(words)),
    read: async ({ uri }) => (await client.readResource({ uri })).contents[0].text,
    async progress(words) {
      let count = 0;
      const result = await call(words, { onprogress: () => (count += 1) });
      return { count, text: text(result) };
    },
    question: async (words) => text(await call(words)),
    async change({ uri, ...words }) {
      if (client.getProtocolEra() === 'modern') await client.listen({ resourceSubscriptions: [uri] });
      else await client.subscribeResource({ uri });
      return until(
        () => updated,
        () => call(words),
      );
    },
  },
  () => client.close(),
);
