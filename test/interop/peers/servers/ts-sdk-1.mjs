// The fixture on the official TypeScript SDK, lines 1.0 to 1.32: ts-sdk-1.mjs http|sse|stdio PORT

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const [transport, port] = process.argv.slice(2);
const NUMBERS = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
};
const NOTHING = { type: 'object', properties: {} };
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const URI = 'note://today';
const say = (text) => ({ content: [{ type: 'text', text }] });

function makeServer() {
  const server = new Server(
    { name: 'interop', version: '1.0.0' },
    { capabilities: { tools: {}, resources: { subscribe: true } } },
  );
  const tools = {
    add: ({ a, b }) => say(String(a + b)),
    fail: () => ({ ...say('It failed on purpose'), isError: true }),
    async slow(_args, tell, meta) {
      const progressToken = meta?.progressToken;
      for (let progress = 1; progress <= 3 && progressToken !== undefined; progress += 1) {
        await tell({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        await delay(50);
      }
      return say('slept');
    },
    async ask(_args, _tell, _meta, options) {
      const { content } = await server.elicitInput({ message: 'Who?', requestedSchema: FORM }, options);
      return say(`Hello ${content.name}`);
    },
    async touch() {
      await server.sendResourceUpdated({ uri: URI });
      return say('touched');
    },
  };
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: name === 'add' ? NUMBERS : NOTHING })),
  }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
    // Before 1.10 a session has one stream, and a handler is not told of its request.
    const tell = extra?.sendNotification ?? ((notification) => server.notification(notification));
    return tools[params.name](params.arguments ?? {}, tell, params._meta, {
      relatedRequestId: extra?.requestId,
    });
  });
  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({
    resources: [{ uri: URI, name: 'today' }],
  }));
  server.setRequestHandler(types.ReadResourceRequestSchema, () => ({
    contents: [{ uri: URI, mimeType: 'text/plain', text: 'Today' }],
  }));
  server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
  return server;
}

async function serveHttp() {
  const { StreamableHTTPServerTransport } = await import(
    '@modelcontextprotocol/sdk/server/streamableHttp.js'
  );
  const sessions = new Map();
  return async (request, response) => {
    let session = sessions.get(request.headers['mcp-session-id']);
    if (session === undefined) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, session),
      });
      await makeServer().connect(session);
    }
    await session.handleRequest(request, response);
  };
}

async function serveSse() {
  const { SSEServerTransport } = await import('@modelcontextprotocol/sdk/server/sse.js');
  const sessions = new Map();
  return async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (request.method === 'GET' && pathname === '/sse') {
      const session = new SSEServerTransport('/messages', response);
      sessions.set(session.sessionId, session);
      await makeServer().connect(session);
    } else if (request.method === 'POST' && pathname === '/messages') {
      await sessions.get(searchParams.get('sessionId'))?.handlePostMessage(request, response);
    } else response.writeHead(404).end();
  };
}

if (transport === 'stdio') {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  await makeServer().connect(new StdioServerTransport());
} else {
  const handle = await (transport === 'sse' ? serveSse() : serveHttp());
  createServer((request, response) => {
    handle(request, response).catch((error) => {
      console.error(error);
      if (!response.headersSent) response.writeHead(500).end();
    });
  }).listen(Number(port), '127.0.0.1');
}
