import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import {
  completable,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  McpServer,
  ProtocolError,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
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
import type { FixtureState, Round, ToolContext } from './fixture-tool.js';
import { hostPeer, type Peer } from './peer.js';
import { runTool, toolsOf } from './tools.js';

export interface V2Options {
  /** `stateless` (the SDK's default) and `sessions` serve both eras; `reject` is modern only. */
  legacy?: 'stateless' | 'sessions' | 'reject';
  /** How modern answers are framed; the SDK's default is JSON until something else than the result is to be sent. */
  responseMode?: 'auto' | 'sse' | 'json';
}

/** The fixture on an SDK 2.x `McpServer`, one per request. */
function createServer(state: FixtureState): McpServer {
  const mcp = new McpServer(
    { name: 'fixture-v2', version: '2.0.0', title: 'Fixture, SDK 2.x' },
    {
      instructions: INSTRUCTIONS,
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } },
      cacheHints: { 'tools/list': { ttlMs: 60_000, cacheScope: 'public' } },
    },
  );
  const memory = new Map<string, string>();
  for (const [name, tool] of toolsOf('v2')) {
    const { title, description } = tool;
    const config: Loose = { title, description, inputSchema: fromJsonSchema(tool.inputSchema) };
    if (tool.outputSchema) config.outputSchema = fromJsonSchema(tool.outputSchema);
    mcp.registerTool(name, config, (args: Loose, context: Loose) =>
      runTool(name, args, contextOf(context, memory), state),
    );
  }
  mcp.registerPrompt(
    'greet',
    {
      title: 'Greet',
      description: 'A greeting',
      argsSchema: z.object({ name: completable(z.string(), completeName), style: z.string().optional() }),
    },
    ({ name, style }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: greeting(name, style) } }],
    }),
  );
  mcp.registerPrompt('introduce', { description: 'Asks for the name first' }, async (context: Loose) => {
    const name = await nameOf(contextOf(context, memory));
    if (typeof name !== 'string') return name;
    return { messages: [{ role: 'user', content: { type: 'text', text: greeting(name) } }] };
  });
  // Registered for its place in the template list and its completion; reading is overridden below.
  mcp.registerResource(
    'note',
    new ResourceTemplate(NOTE_TEMPLATE, { list: undefined, complete: { name: completeNote } }),
    { description: 'A note by name', mimeType: 'text/plain' },
    () => ({ contents: [] }),
  );
  // McpServer looks URIs up in percent-encoded form and has no pages.
  mcp.server.setRequestHandler('resources/list', ({ params }) => {
    const { items, ...rest } = cut(params?.cursor);
    return { resources: items, ...rest };
  });
  mcp.server.setRequestHandler('resources/read', async ({ params: { uri } }, context) => {
    if (uri === GUEST_BOOK_URI) {
      const name = await nameOf(contextOf(context, memory));
      return typeof name === 'string' ? { contents: [{ uri, text: `Last guest: ${name}` }] } : name;
    }
    const contents = readResource(uri);
    if (!contents) throw new ResourceNotFoundError(uri);
    return { contents };
  });
  mcp.server.setRequestHandler('resources/subscribe', () => ({}));
  mcp.server.setRequestHandler('resources/unsubscribe', () => ({}));
  return mcp;
}

function cut(cursor: string | undefined) {
  try {
    return page(RESOURCES, RESOURCES_PER_PAGE, cursor);
  } catch (error) {
    throw new ProtocolError(-32602, (error as Error).message);
  }
}

function contextOf(context: Loose, memory: Map<string, string>): ToolContext {
  const request = context.mcpReq;
  return {
    meta: request._meta,
    sessionId: context.sessionId,
    signal: request.signal,
    memory,
    notify: (method, params) => request.notify({ method, params }),
    log: (level, message) => request.log(level, message, 'fixture'),
    async ask(round, questions) {
      const known = answersSoFar(request);
      const answers = known[round];
      if (answers !== undefined) return { answers };
      const requestState = JSON.stringify({ asking: round, known });
      return { result: inputRequired({ inputRequests: inputRequestsOf(questions), requestState }) };
    },
    answered: (round) => answersSoFar(request)[round] !== undefined,
    visit(message, url) {
      if (inputResponse(request.inputResponses, 'visit').kind === 'elicit') return undefined;
      return inputRequired({ inputRequests: { visit: inputRequired.elicitUrl({ message, url }) } });
    },
  };
}

/** The answers to the rounds so far: those of earlier ones travel in the state, those of the latest come beside it. */
function answersSoFar(request: Loose): Record<number, Record<string, Loose>> {
  const state = request.requestState();
  if (typeof state !== 'string') return {};
  const { asking, known } = JSON.parse(state);
  return { ...known, [asking]: request.inputResponses ?? {} };
}

function inputRequestsOf(questions: Round): Loose {
  const entries = Object.entries(questions).map(([key, { method, params }]) => {
    if (method === 'sampling/createMessage') return [key, inputRequired.createMessage(params)];
    if (method === 'roots/list') return [key, inputRequired.listRoots()];
    return [key, params.mode === 'url' ? inputRequired.elicitUrl(params) : inputRequired.elicit(params)];
  });
  return Object.fromEntries(entries);
}

/** A server of the SDK's 2.x line: modern, and legacy unless that is rejected. */
export function startV2(options: V2Options = {}): Promise<Peer> {
  return hostPeer(`v2 ${options.legacy ?? 'default'}`, (calls) => {
    const state: FixtureState = { calls, count: 0, connectAsked: false };
    const create = () => createServer(state);
    const legacy = options.legacy === 'sessions' ? 'reject' : (options.legacy ?? 'stateless');
    const handler = createMcpHandler(create, { ...options, legacy, keepAliveMs: 0 });
    const handle = toNodeHandler(handler);
    const sessions = options.legacy === 'sessions' ? legacySessions(create) : undefined;
    return {
      async handle(request, response) {
        const taken = await sessions?.take(request, response);
        if (!taken?.done) await handle(request as Loose, response as Loose, taken?.body);
      },
      async end() {
        await sessions?.end();
        await handler.close();
      },
      sessions: () => sessions?.count() ?? 0,
      announce: handler.notify,
    };
  });
}

/** The legacy leg as a server with sessions has it: it takes whatever does not say that it is modern. */
function legacySessions(create: () => McpServer) {
  const transports = new Map<string, NodeStreamableHTTPServerTransport>();
  async function open() {
    const transport: NodeStreamableHTTPServerTransport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id),
    });
    await create().connect(transport);
    return transport;
  }
  return {
    async take(request: IncomingMessage, response: ServerResponse) {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
      if (body?.params?._meta?.['io.modelcontextprotocol/protocolVersion']) return { done: false, body };
      const id = request.headers['mcp-session-id'];
      const known = typeof id === 'string' ? transports.get(id) : undefined;
      if (known === undefined && id !== undefined) {
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
      } else await (known ?? (await open())).handleRequest(request as Loose, response as Loose, body);
      return { done: true, body };
    },
    async end() {
      await Promise.all([...transports.values()].map((transport) => transport.close()));
      transports.clear();
    },
    count: () => transports.size,
  };
}
