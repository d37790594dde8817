import { toNodeHandler } from '@modelcontextprotocol/node';
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
import { hostPeer, type Peer } from './peer.js';
import { type FixtureState, runTool, type ToolContext, toolsOf } from './tools.js';

export interface V2Options {
  /** `stateless` (the SDK's default) serves both eras; `reject` is modern only. */
  legacy?: 'stateless' | 'reject';
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
  mcp.server.setRequestHandler('resources/read', ({ params: { uri } }) => {
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
    async elicit(message, requestedSchema) {
      const response = inputResponse(request.inputResponses, 'name');
      if (response.kind === 'elicit') return { answer: response };
      const ask = inputRequired.elicit({ message, requestedSchema });
      return { result: inputRequired({ inputRequests: { name: ask }, requestState: 'asked' }) };
    },
    visit(message, url) {
      if (inputResponse(request.inputResponses, 'visit').kind === 'elicit') return undefined;
      return inputRequired({ inputRequests: { visit: inputRequired.elicitUrl({ message, url }) } });
    },
  };
}

/** A server of the SDK's 2.x line: modern, and legacy without sessions unless that is rejected. */
export function startV2(options: V2Options = {}): Promise<Peer> {
  return hostPeer(`v2 ${options.legacy ?? 'default'}`, (calls) => {
    const state: FixtureState = { calls, count: 0, connectAsked: false };
    const handler = createMcpHandler(() => createServer(state), { ...options, keepAliveMs: 0 });
    const handle = toNodeHandler(handler);
    return {
      handle: (request, response) => handle(request as Loose, response as Loose),
      end: () => handler.close(),
      sessions: () => 0,
      announce: handler.notify,
    };
  });
}
