// A legacy server that remembers nothing but counts, and the clients that call it through a gateway and never come
// back. Started with fork(): it tells { url }, and after each { gateway, calls } that it is given, once every call has
// been cancelled, { statuses, counts }.

import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

const CLIENTS = 32;
const MODERN = '2026-07-28';
const counts = { refused: 0, cancelled: 0, sessions: 0 };
let nextSession = 1;
let nextCall = 1;

const QUESTIONS = [
  {
    method: 'elicitation/create',
    params: { message: '?'.repeat(1_000), requestedSchema: { type: 'object', properties: {} } },
  },
  {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: '?' } }], maxTokens: 10 },
  },
];

const ANSWERS = {
  initialize: (message, res) => {
    counts.sessions++;
    const result = {
      protocolVersion: message.params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'forgetful', version: '1' },
    };
    res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': `session-${nextSession++}` });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  },
  'tools/call': (message, res) => {
    const question = QUESTIONS[message.params.arguments.key % QUESTIONS.length];
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 0, ...question })}\n\n`);
  },
  'notifications/cancelled': (_message, res) => {
    counts.cancelled++;
    res.writeHead(202).end();
  },
};

const server = createServer((req, res) => {
  let body = '';
  req.on('data', (chunk) => {
    body += chunk;
  });
  req.on('end', () => {
    if (req.method !== 'POST') {
      if (req.method === 'DELETE') counts.sessions--;
      res.writeHead(req.method === 'GET' ? 405 : 200, { allow: 'POST' }).end();
      return;
    }
    const message = JSON.parse(body);
    const answer = ANSWERS[message.method];
    if (answer !== undefined) answer(message, res);
    else {
      if (message.method === undefined) counts.refused++;
      res.writeHead(202).end();
    }
  });
});

async function call(pool, path) {
  const key = nextCall++;
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'ExampleClient', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, sampling: {} },
  };
  const { statusCode, body } = await pool.request({
    path,
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'ask',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: key,
      method: 'tools/call',
      params: { name: 'ask', arguments: { key }, _meta },
    }),
  });
  const text = await body.text();
  return text.includes('input_required') ? statusCode : text;
}

/** Sends calls, and waits until the last has been cancelled. */
async function run({ gateway, calls }) {
  const { origin, pathname } = new URL(gateway);
  const pool = new Pool(origin, { connections: CLIENTS });
  const statuses = new Set();
  let left = calls;
  const client = async () => {
    while (left-- > 0) statuses.add(await call(pool, pathname));
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  while (counts.cancelled < nextCall - 1) await delay(20);
  await pool.close();
  process.send({ statuses: [...statuses], counts });
}

process.on('message', run);
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}/mcp` }));
