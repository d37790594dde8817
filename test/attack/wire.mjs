// What attackers send: HTTP requests of both eras, with bodies as bytes, and raw sockets.

import { Agent, request } from 'node:http';
import { connect } from 'node:net';

const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const PROTOCOL = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** Sends a request; gives `{ status, headers, text }`. A connection that breaks has the status 0. */
export function send(url, { method = 'POST', headers = {}, body, timeoutMs = 30_000 } = {}) {
  return new Promise((resolve) => {
    const failed = (error) => resolve({ status: 0, headers: {}, text: error.message });
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = request(
      url,
      { method, agent, headers: { ...JSON_HEADERS, ...length, ...headers }, timeout: timeoutMs },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          if (text.length < 1_000_000) text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
        response.on('error', failed);
      },
    );
    sent.on('timeout', () => sent.destroy(new Error('timeout')));
    sent.on('error', failed);
    sent.end(body);
  });
}

/** A modern request; `params` is JSON text of members, without braces. */
export function modernRequest(method, params = '', { id = 1, name, capabilities = '{}', meta = '' } = {}) {
  const envelope = `"${PROTOCOL}":"2026-07-28","${CAPABILITIES}":${capabilities}${meta === '' ? '' : `,${meta}`}`;
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
  if (name !== undefined) headers['mcp-name'] = name;
  const members = [`"_meta":{${envelope}}`, params].filter((part) => part !== '').join(',');
  return {
    headers,
    body: `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":{${members}}}`,
  };
}

export const CALL = (options) =>
  modernRequest('tools/call', '"name":"echo","arguments":{}', { name: 'echo', ...options });

export function initializeRequest({
  capabilities = '{}',
  clientInfo = '{"name":"attacker","version":"1"}',
} = {}) {
  return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":${capabilities},"clientInfo":${clientInfo}}}`;
}

/** Opens a legacy session; gives the headers of its requests. */
export async function openSession(url, headers = {}) {
  const { status, headers: received, text } = await send(url, { headers, body: initializeRequest() });
  if (status !== 200) throw new Error(`initialize: ${status} ${text.slice(0, 200)}`);
  return { ...headers, 'mcp-session-id': received['mcp-session-id'], 'mcp-protocol-version': '2025-11-25' };
}

/** Opens a raw connection; `received` grows. */
export function socket(origin) {
  const { hostname, port } = new URL(origin);
  const opened = connect(Number(port), hostname);
  const state = { socket: opened, received: '' };
  opened.setEncoding('latin1').on('error', () => {});
  opened.on('data', (text) => {
    if (state.received.length < 100_000) state.received += text;
  });
  return state;
}

/** Runs `work` for each of `count` numbers, `atOnce` at a time. */
export async function each(count, atOnce, work) {
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

/** @throws Error with what came, unless it holds */
export function check(holds, what) {
  if (!holds) throw new Error(what);
}
