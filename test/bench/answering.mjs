// What the trivial MCP servers of the bench have in common: both eras on one URL, JSON answers, nothing kept per session.

import { createServer } from 'node:http';
import { reportListening } from './listening.mjs';

const MODERN_MARK = '"io.modelcontextprotocol/protocolVersion"';
let sessions = 0;

function answer(res, status, frame, headers) {
  const body = JSON.stringify(frame);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  res.end(body);
}

function fail(res, status, id, code, message) {
  answer(res, status, { jsonrpc: '2.0', id, error: { code, message } });
}

function post(req, res, text, { resultsAt, onRequest, onListen }) {
  const { id, method } = JSON.parse(text);
  if (id === undefined) return res.writeHead(202).end();
  const era = text.includes(MODERN_MARK) ? 'modern' : 'legacy';
  if (era === 'legacy' && method !== 'initialize' && !req.headers['mcp-session-id']) {
    return fail(res, 400, id, -32000, 'Bad Request: Mcp-Session-Id header is required');
  }
  if (era === 'modern' && req.headers['mcp-method'] !== method) {
    return fail(res, 400, id, -32020, 'Mcp-Method header does not match the body');
  }
  if (era === 'modern' && method === 'subscriptions/listen' && onListen) return onListen(res, id);
  const result = resultsAt(req.url)[era][method];
  if (!result) return fail(res, era === 'modern' ? 404 : 200, id, -32601, `Method not found: ${method}`);
  onRequest?.(method);
  const session = method === 'initialize' ? { 'mcp-session-id': `s-${++sessions}` } : undefined;
  answer(res, 200, { jsonrpc: '2.0', id, result }, session);
}

/**
 * Serves `resultsAt(path)`, an object of results by era and method, and tells `onRequest(method)` of each. With
 * `onGet(res)` there is a GET stream, and with `onListen(res, id)` there is `subscriptions/listen`.
 */
export function serve({ resultsAt, onRequest, onGet, onListen }) {
  const server = createServer((req, res) => {
    if (req.method === 'DELETE') return res.writeHead(204).end();
    if (req.method === 'GET' && onGet) return onGet(res);
    if (req.method !== 'POST') return res.writeHead(405, { allow: 'POST, DELETE' }).end();
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => post(req, res, Buffer.concat(chunks).toString(), { resultsAt, onRequest, onListen }));
  });
  // Proxies idle while the others have their rounds; their connections should survive that.
  server.keepAliveTimeout = 120_000;
  reportListening(server);
}
