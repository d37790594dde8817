import { randomUUID } from 'node:crypto';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  ListResourcesRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Loose } from '../net.js';
import { GUEST_BOOK_URI, nameOf } from './asking.js';
import {
  completeName,
  completeNote,
  greeting,
  INSTRUCTIONS,
  NOTE_TEMPLATE,
  page,
  RESOURCES,
  RESOURCES_PER_PAGE,
  readResource,
} from './fixture.js';
import type { Ask, FixtureState, ToolContext } from './fixture-tool.js';
import { hostPeer, type Peer, type Run } from './peer.js';
import { runTool, toolsOf } from './tools.js';

export interface V1Options {
  /** `stateless`: a fresh server for every request and no session id. Default: stateful. */
  stateless?: boolean;
  /** Answer POSTs with `application/json`. */
  json?: boolean;
  /** Keep events, so that streams begin with a priming event and can be resumed. */
  resumable?: boolean;
  /** Status for a session id that is not known: 404 as the transport itself, or 400 as the SDK's example apps. */
  unknownSession?: 404 | 400;
  /** HTTP+SSE in place of Streamable HTTP: GET opens the stream, POSTs go to `/mcp/messages`. */
  sse?: boolean;
}

/** The fixture on an SDK 1.x `McpServer`, one per session. */
function createServer(state: FixtureState): McpServer {
  const mcp = new McpServer(
    { name: 'fixture-v1', version: '1.0.0', title: 'Fixture, SDK 1.x' },
    {
      instructions: INSTRUCTIONS,
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } },
    },
  );
  const memory = new Map<string, string>();
  for (const [name, tool] of toolsOf('v1')) {
    const { title, description } = tool;
    const config: Loose = { title, description, inputSchema: z.fromJSONSchema(tool.inputSchema) };
    if (tool.outputSchema) config.outputSchema = z.fromJSONSchema(tool.outputSchema);
    const handler: Loose = (args: Loose, extra: Loose) =>
      runTool(name, args, contextOf(mcp, extra, memory, state), state);
    mcp.registerTool(name, config, handler);
  }
  mcp.registerPrompt(
    'greet',
    {
      title: 'Greet',
      description: 'A greeting',
      argsSchema: { name: completable(z.string(), completeName), style: z.string().optional() },
    },
    ({ name, style }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: greeting(name, style) } }],
    }),
  );
  mcp.registerPrompt('introduce', { description: 'Asks for the name first' }, async (extra) => {
    const name = await nameOf(contextOf(mcp, extra, memory, state));
    return { messages: [{ role: 'user', content: { type: 'text', text: greeting(name as string) } }] };
  });
  // Registered for its place in the template list and its completion; reading is overridden below.
  mcp.registerResource(
    'note',
    new ResourceTemplate(NOTE_TEMPLATE, { list: undefined, complete: { name: completeNote } }),
    { description: 'A note by name', mimeType: 'text/plain' },
    () => ({ contents: [] }),
  );
  // McpServer looks URIs up in percent-encoded form and has neither pages nor the standard's -32002.
  mcp.server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => {
    const { items, ...rest } = page(RESOURCES, RESOURCES_PER_PAGE, params?.cursor);
    return { resources: items, ...rest };
  });
  mcp.server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }, extra) => {
    if (uri === GUEST_BOOK_URI) {
      return {
        contents: [{ uri, text: `Last guest: ${await nameOf(contextOf(mcp, extra, memory, state))}` }],
      };
    }
    const contents = readResource(uri);
    if (!contents) throw new McpError(-32002, 'Resource not found', { uri });
    return { contents };
  });
  mcp.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  mcp.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  return mcp;
}

function contextOf(
  mcp: McpServer,
  extra: Loose,
  memory: Map<string, string>,
  state: FixtureState,
): ToolContext {
  return {
    meta: extra._meta,
    sessionId: extra.sessionId,
    signal: extra.signal,
    memory,
    notify: (method, params) => extra.sendNotification({ method, params }),
    log(level, message, via) {
      const params: Loose = { level, data: message, logger: 'fixture' };
      if (via === 'session') return mcp.server.sendLoggingMessage(params, extra.sessionId);
      return extra.sendNotification({ method: 'notifications/message', params });
    },
    async ask(_round, questions, via = 'request') {
      const options = via === 'session' ? {} : { relatedRequestId: extra.requestId };
      const entries = Object.entries(questions).map(async ([key, question]) => {
        return [key, await put(mcp.server, question, options)] as const;
      });
      return { answers: Object.fromEntries(await Promise.all(entries)) };
    },
    answered: () => false,
    visit(message, url) {
      if (state.connectAsked) return undefined;
      state.connectAsked = true;
      throw new UrlElicitationRequiredError([{ mode: 'url', message, url, elicitationId: randomUUID() }]);
    },
  };
}

/** The client's answer to one question; `{ error }` when it refuses. */
async function put(server: McpServer['server'], { method, params }: Ask, options: Loose): Promise<Loose> {
  try {
    if (method === 'sampling/createMessage') return await server.createMessage(params, options);
    if (method === 'roots/list') return await server.listRoots(params, options);
    if (params.mode !== 'url') return await server.elicitInput(params, options);
    const elicitationId = randomUUID();
    const answer = await server.elicitInput({ ...params, elicitationId }, options);
    await server.createElicitationCompletionNotifier(elicitationId)();
    return answer;
  } catch (error) {
    const { code, message } = error as McpError;
    return { error: { code, message } };
  }
}

function memoryEventStore(): EventStore {
  const events: { id: string; stream: string; message: Loose }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `${stream}_${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(lastId, { send }) {
      const from = events.findIndex(({ id }) => id === lastId);
      const stream = events[from]?.stream ?? '';
      for (const event of events.slice(from + 1)) {
        if (event.stream === stream) await send(event.id, event.message);
      }
      return stream;
    },
  };
}

const rpcError = (code: number, message: string) =>
  JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null });

/** A session per `initialize`, kept by its id. */
function statefulRun(state: FixtureState, options: V1Options): Run {
  const sessions = new Map<string, { mcp: McpServer; transport: StreamableHTTPServerTransport }>();
  async function open() {
    const mcp = createServer(state);
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: options.json ?? false,
      ...(options.resumable ? { eventStore: memoryEventStore() } : {}),
      onsessioninitialized: (id) => {
        sessions.set(id, { mcp, transport });
      },
      onsessionclosed: (id) => {
        sessions.delete(id);
      },
    });
    await mcp.connect(transport as Loose);
    return transport;
  }
  const each = (tell: (mcp: McpServer) => unknown) => {
    for (const { mcp } of sessions.values()) tell(mcp);
  };
  return {
    async handle(request, response) {
      const id = request.headers['mcp-session-id'];
      const known = typeof id === 'string' ? sessions.get(id) : undefined;
      if (known) return known.transport.handleRequest(request, response);
      if (id !== undefined) {
        const status = options.unknownSession ?? 404;
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(
          status === 404
            ? rpcError(-32001, 'Session not found')
            : rpcError(-32000, 'Bad Request: No valid session ID provided'),
        );
        return;
      }
      await (await open()).handleRequest(request, response);
    },
    async end() {
      await Promise.all([...sessions.values()].map(({ mcp }) => mcp.close()));
      sessions.clear();
    },
    sessions: () => sessions.size,
    announce: {
      toolsChanged: () => each((mcp) => mcp.sendToolListChanged()),
      promptsChanged: () => each((mcp) => mcp.sendPromptListChanged()),
      resourcesChanged: () => each((mcp) => mcp.sendResourceListChanged()),
      resourceUpdated: (uri) => each((mcp) => mcp.server.sendResourceUpdated({ uri })),
    },
  };
}

const nothing = () => {};
const NOBODY = {
  toolsChanged: nothing,
  promptsChanged: nothing,
  resourcesChanged: nothing,
  resourceUpdated: nothing,
};

/** A server and a transport per HTTP request, as the SDK wants it of stateless servers. */
function statelessRun(state: FixtureState, options: V1Options): Run {
  return {
    async handle(request, response) {
      const mcp = createServer(state);
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: options.json ?? false });
      response.on('close', () => void mcp.close());
      await mcp.connect(transport as Loose);
      await transport.handleRequest(request, response);
    },
    end: async () => {},
    sessions: () => 0,
    announce: NOBODY,
  };
}

/** HTTP+SSE: a session for each stream. */
function sseRun(state: FixtureState): Run {
  const sessions = new Map<string, { mcp: McpServer; transport: SSEServerTransport }>();
  const each = (tell: (mcp: McpServer) => unknown) => {
    for (const { mcp } of sessions.values()) tell(mcp);
  };
  return {
    async handle(request, response) {
      const url = new URL(request.url ?? '/', 'http://localhost');
      if (request.method === 'GET' && url.pathname === '/mcp') {
        const transport = new SSEServerTransport('/mcp/messages', response);
        const mcp = createServer(state);
        sessions.set(transport.sessionId, { mcp, transport });
        response.on('close', () => sessions.delete(transport.sessionId));
        await mcp.connect(transport as Loose);
        return;
      }
      const known = sessions.get(url.searchParams.get('sessionId') ?? '');
      if (request.method !== 'POST' || url.pathname !== '/mcp/messages') response.writeHead(405).end();
      else if (known === undefined) response.writeHead(404).end('Session not found');
      else await known.transport.handlePostMessage(request, response);
    },
    async end() {
      await Promise.all([...sessions.values()].map(({ mcp }) => mcp.close()));
      sessions.clear();
    },
    sessions: () => sessions.size,
    announce: {
      toolsChanged: () => each((mcp) => mcp.sendToolListChanged()),
      promptsChanged: () => each((mcp) => mcp.sendPromptListChanged()),
      resourcesChanged: () => each((mcp) => mcp.sendResourceListChanged()),
      resourceUpdated: (uri) => each((mcp) => mcp.server.sendResourceUpdated({ uri })),
    },
  };
}

/** A server of the SDK's 1.x line (2025-11-25 and older). */
export function startV1(options: V1Options = {}): Promise<Peer> {
  const kind = options.sse ? 'http+sse' : options.stateless ? 'stateless' : 'stateful';
  const name = `v1 ${kind}${options.json ? ' json' : ''}`;
  return hostPeer(name, (calls) => {
    const state: FixtureState = { calls, count: 0, connectAsked: false };
    if (options.sse) return sseRun(state);
    return options.stateless ? statelessRun(state, options) : statefulRun(state, options);
  });
}
