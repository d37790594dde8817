import { Client } from 'sdk-2024-11-05/client/index.js';
import { SSEClientTransport } from 'sdk-2024-11-05/client/sse.js';
import { Server } from 'sdk-2024-11-05/server/index.js';
import { SSEServerTransport } from 'sdk-2024-11-05/server/sse.js';
import {
  CallToolRequestSchema,
  CreateMessageRequestSchema,
  ListToolsRequestSchema,
} from 'sdk-2024-11-05/types.js';
import type { Loose } from '../support/net.js';
import { hostPeer, type Peer } from '../support/peers/peer.js';

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

/** Two tools on the SDK release of 2024-11-05: one that adds, one that asks the client's model. */
function createServer(): Server {
  const server: Loose = new Server(
    { name: 'oldest', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ['add', 'think'].map((name) => ({ name, inputSchema: { type: 'object' } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }: Loose) => {
    if (params.name === 'add') return text(String(params.arguments.a + params.arguments.b));
    const progressToken = params._meta?.progressToken;
    if (progressToken !== undefined) {
      await server.notification({
        method: 'notifications/progress',
        params: { progressToken, progress: 1, total: 2 },
      });
    }
    const messages = [{ role: 'user', content: { type: 'text', text: params.arguments.about } }];
    const { content } = await server.createMessage({ messages, maxTokens: 10 });
    return text(content.text);
  });
  return server;
}

/** The server on HTTP+SSE, the only transport for the network that it knows. */
export function startOldest(): Promise<Peer> {
  return hostPeer('the SDK of 2024-11-05', () => {
    const sessions = new Map<string, { server: Loose; transport: SSEServerTransport }>();
    const nothing = () => {};
    return {
      async handle(request, response) {
        const url = new URL(request.url ?? '/', 'http://localhost');
        if (request.method === 'GET' && url.pathname === '/mcp') {
          const transport = new SSEServerTransport('/mcp/messages', response);
          const server = createServer();
          sessions.set(transport.sessionId, { server, transport });
          response.on('close', () => sessions.delete(transport.sessionId));
          await server.connect(transport);
          return;
        }
        const known = sessions.get(url.searchParams.get('sessionId') ?? '');
        if (known === undefined || request.method !== 'POST') response.writeHead(404).end();
        else await known.transport.handlePostMessage(request, response);
      },
      async end() {
        for (const { server } of sessions.values()) await server.close();
      },
      sessions: () => sessions.size,
      announce: {
        toolsChanged: () => {
          for (const { server } of sessions.values())
            void server.notification({ method: 'notifications/tools/list_changed' });
        },
        promptsChanged: nothing,
        resourcesChanged: nothing,
        resourceUpdated: nothing,
      },
    };
  });
}

/** The client of the same release, which declares sampling. */
export async function connectOldest(
  url: string,
  handlers: Record<string, (params: Loose) => Promise<Loose>>,
): Promise<{ sdk: Loose; heard: string[] }> {
  const sdk: Loose = new Client({ name: 'oldest', version: '1.0.0' }, { capabilities: { sampling: {} } });
  const heard: string[] = [];
  sdk.fallbackNotificationHandler = async ({ method }: Loose) => void heard.push(method);
  sdk.setRequestHandler(CreateMessageRequestSchema, ({ params }: Loose) =>
    handlers['sampling/createMessage']?.(params),
  );
  await sdk.connect(new SSEClientTransport(new URL(url)));
  return { sdk, heard };
}
