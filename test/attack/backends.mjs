// The servers of an attack run, in a process of their own: well-behaved ones of both eras, and hostile ones. The path
// tells which one is meant. Prints nothing; the parent gets `{ port }`, and answers to `{ sockets, trapped }`.

import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

const MODERN = '2026-07-28';
const TOOL = { name: 'echo', inputSchema: { type: 'object' } };
const CHUNK = Buffer.alloc(64 * 1024, 'x');

const longList = Array.from({ length: 4_000 }, (_, i) => ({
  name: `t${i}`,
  description: 'd'.repeat(900),
  inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
}));
// The annotation at the end makes a search through the list run as far as it can.
longList.push({
  name: 'last',
  inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } },
});
const longTools = JSON.stringify(longList);
const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, ' '));

let trapped = 0;

const results = {
  'server/discover': () => ({
    supportedVersions: [MODERN],
    capabilities: { tools: {} },
    serverInfo: { name: 'b', version: '1' },
  }),
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'b', version: '1' },
  }),
  'tools/list': () => ({ tools: [TOOL] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
  ping: () => ({}),
};

function answer(res, era, { id, method, params }) {
  if (id === undefined) return res.writeHead(202).end();
  if (era === 'legacy' && method === 'server/discover') return error(res, id, 400);
  if (era === 'modern' && method === 'initialize') return error(res, id, 400);
  const result = Object.hasOwn(results, method) ? results[method](params ?? {}) : undefined;
  if (result === undefined) return error(res, id, 200);
  const head = era === 'modern' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
  const headers = { 'content-type': 'application/json' };
  if (method === 'initialize') headers['mcp-session-id'] = `s${Math.random()}`;
  return res
    .writeHead(200, headers)
    .end(JSON.stringify({ jsonrpc: '2.0', id, result: { ...head, ...result } }));
}

function error(res, id, status) {
  const body = { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };
  return res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function endless(res, type, chunk = CHUNK) {
  res.writeHead(200, { 'content-type': type });
  const more = () => {
    if (res.destroyed) return;
    if (res.write(chunk)) setImmediate(more);
    else res.once('drain', more);
  };
  more();
}

/** What a server does with `tools/call` or another request instead of answering it; by the name in its path. */
const HOSTILE = {
  hang: () => {},
  text: (res) => endless(res, 'text/plain'),
  comments: (res) => endless(res, 'text/event-stream', Buffer.from(':\n\n'.repeat(20_000))),
  event: (res) => endless(res, 'text/event-stream', Buffer.from(`data: ${'x'.repeat(60_000)}`)),
  json: (res) => endless(res, 'application/json', Buffer.alloc(64 * 1024, ' ')),
  bomb: (res) =>
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb),
  headers: (res) => res.writeHead(200, { 'x-long': 'h'.repeat(200_000) }).end(),
  garbage: (res) => res.socket.end('HTTP/1.1 two hundred\r\n\r\n{'),
  deep: (res, { id }) =>
    res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${id},"result":{"content":${'['.repeat(9_000)}${']'.repeat(9_000)}}}`),
  large: (res, { id }) =>
    res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(
        `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"${'t'.repeat(4_000_000)}"}]}}`,
      ),
};

function handle(req, res, body) {
  const [, era, trait, hostile] = req.url.split('/');
  if (era === 'trap') {
    trapped++;
    return res.end('{"resource":"trapped"}');
  }
  if (trait === 'challenge') {
    const url = `http://${req.headers.host}//${req.headers['x-trap']}/trap`;
    return res.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${url}"` }).end();
  }
  if (req.method !== 'POST') return res.writeHead(405).end();
  const message = JSON.parse(body);
  const { method, id } = message;
  if (trait === 'lists' && method === 'tools/list') {
    const head = era === 'modern' ? '"resultType":"complete","ttlMs":0,"cacheScope":"private",' : '';
    res.writeHead(200, { 'content-type': 'application/json' });
    return res.end(`{"jsonrpc":"2.0","id":${id},"result":{${head}"tools":${longTools}}}`);
  }
  if (trait === 'shaking' && req.headers.authorization !== 'Bearer other') return undefined;
  if (trait === 'silent' && id === undefined && method !== 'notifications/initialized') return undefined;
  if (trait === 'hostile' && method === 'tools/call') return HOSTILE[hostile](res, message);
  return answer(res, era, message);
}

const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => handle(req, res, Buffer.concat(chunks).toString()));
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => server.getConnections((_, sockets) => process.send({ sockets, trapped })));
