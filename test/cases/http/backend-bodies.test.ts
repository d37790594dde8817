import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep } from '../../support/net.js';
import { type LegacySession, legacy, MODERN, modern, type RawResponse } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';
import { startWireBackend } from '../../support/wire-backend.js';

useVirtualTime();

const JSON_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const NEVER_FINE =
  /^The connection to .* broke|cannot use the response|stopped in the middle|JSON-RPC response was expected/;

interface Shape {
  /** Writes an answer to the socket, past all that node would put right. */
  write(socket: Socket, body: string): void | Promise<void>;
  /** Whether there is a whole message in it. */
  fine: boolean;
}

const bytesOf = (body: string) => Buffer.byteLength(body);

const SHAPES: Record<string, Shape> = {
  'a right length': {
    write: (socket, body) => void socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body)}\r\n\r\n${body}`),
    fine: true,
  },
  'a length that is two bytes too great, and the connection closed': {
    write: (socket, body) =>
      void socket.end(`${JSON_HEAD}Content-Length: ${bytesOf(body) + 2}\r\n\r\n${body}`),
    fine: true,
  },
  'a length that is too great, and the connection reset': {
    async write(socket, body) {
      socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body) + 20}\r\n\r\n${body}`);
      await sleep(20);
      socket.resetAndDestroy();
    },
    fine: true,
  },
  'a length that is too great, and the connection left open': {
    write: (socket, body) =>
      void socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body) + 2}\r\n\r\n${body}`),
    fine: true,
  },
  'a right length, and a part of the body missing': {
    write: (socket, body) =>
      void socket.end(`${JSON_HEAD}Content-Length: ${bytesOf(body)}\r\n\r\n${body.slice(0, -5)}`),
    fine: false,
  },
  'a right length, and a part of the body missing, and the connection left open': {
    write: (socket, body) =>
      void socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body)}\r\n\r\n${body.slice(0, -5)}`),
    fine: false,
  },
  'a length that is too small': {
    write: (socket, body) =>
      void socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body) - 2}\r\n\r\n${body}`),
    fine: false,
  },
  'a length that is no number': {
    write: (socket, body) => void socket.write(`${JSON_HEAD}Content-Length: many\r\n\r\n${body}`),
    fine: false,
  },
  'a length and chunks': {
    write: (socket, body) =>
      void socket.write(
        `${JSON_HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${bytesOf(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ),
    fine: false,
  },
  'no length, up to the end of the connection': {
    write: (socket, body) => void socket.end(`${JSON_HEAD}\r\n${body}`),
    fine: true,
  },
  'no length, and the connection reset in the middle': {
    async write(socket, body) {
      socket.write(`${JSON_HEAD}\r\n${body.slice(0, -5)}`);
      await sleep(20);
      socket.resetAndDestroy();
    },
    fine: false,
  },
  'HTTP/1.0': {
    write: (socket, body) => void socket.end(`${JSON_HEAD.replace('1.1', '1.0')}\r\n${body}`),
    fine: true,
  },
  'chunks of a byte': {
    async write(socket, body) {
      socket.write(`${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n`);
      for (const byte of Buffer.from(body)) {
        socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]));
      }
      socket.write('0\r\n\r\n');
    },
    fine: true,
  },
  'chunks with extensions and trailers': {
    write: (socket, body) =>
      void socket.write(
        `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n${bytesOf(body).toString(16)};a=b\r\n${body}\r\n0\r\nX-Sum: 1\r\n\r\n`,
      ),
    fine: true,
  },
  'chunks without the last one': {
    write: (socket, body) =>
      void socket.end(
        `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n${bytesOf(body).toString(16)}\r\n${body}\r\n`,
      ),
    fine: true,
  },
  'chunks that are none': {
    write: (socket, body) => void socket.write(`${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n${body}`),
    fine: false,
  },
  'a body that comes slowly': {
    async write(socket, body) {
      socket.write(`${JSON_HEAD}Content-Length: ${bytesOf(body)}\r\n\r\n`);
      const bytes = Buffer.from(body);
      for (let at = 0; at < bytes.length; at += 10) {
        socket.write(bytes.subarray(at, at + 10));
        await sleep(30);
      }
    },
    fine: true,
  },
  'hints before it': {
    write: (socket, body) =>
      void socket.write(
        `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${JSON_HEAD}Content-Length: ${bytesOf(body)}\r\n\r\n${body}`,
      ),
    fine: true,
  },
  'no body': {
    write: (socket) => void socket.write(`${JSON_HEAD}Content-Length: 0\r\n\r\n`),
    fine: false,
  },
  'what is no HTTP': { write: (socket, body) => void socket.end(body), fine: false },
};

describe.concurrent('a backend', () => {
  let backend: Awaited<ReturnType<typeof startWireBackend>>;
  let gateway: TestGateway;
  let session: LegacySession;
  const calls: string[] = [];
  beforeAll(async () => {
    backend = await startWireBackend(({ json, socket }) => {
      const { method, params, id } = json;
      const discovered = { supportedVersions: [MODERN], capabilities: {}, ttlMs: 0, cacheScope: 'private' };
      const listed = { tools: [], ttlMs: 0, cacheScope: 'private' };
      const called = { content: [{ type: 'text', text: 'fine ü' }] };
      const own = method === 'tools/call' ? called : method === 'server/discover' ? discovered : listed;
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...own } });
      if (method === 'tools/call') calls.push(params.name);
      const shape = method === 'tools/call' ? params.name : 'a right length';
      return SHAPES[shape]?.write(socket, body);
    });
    gateway = await startGateway({
      '/mcp': { backend: { url: backend.url, era: 'modern' }, timeouts: { idle: '600ms', total: '5s' } },
    });
    session = await legacy(gateway.url());
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  const clients: Record<string, (name: string) => Promise<RawResponse>> = {
    modern: (name) => modern(gateway.url(), 'tools/call', { name, arguments: {} }),
    legacy: (name) => session.request('tools/call', { name, arguments: {} }),
  };
  for (const client of Object.keys(clients)) {
    test.each(Object.keys(SHAPES))(`asked by a ${client} client may answer with %s`, async (name) => {
      const call = clients[client] as (typeof clients)[string];
      const before = calls.filter((called) => called === name).length;
      const begun = Date.now();
      const answer = await call(name);
      expect(Date.now() - begun).toBeLessThan(3_000);
      if (SHAPES[name]?.fine) expect(answer.json.result.content[0].text).toBe('fine ü');
      else {
        expect(answer.json.error.code).toBe(-32603);
        expect(answer.json.error.message).toMatch(NEVER_FINE);
      }
      // Whatever came of the answer too much, it is no answer to the next request.
      if (name !== 'a right length') {
        // Asked once: what a tool did cannot be undone.
        expect(calls.filter((called) => called === name).length - before).toBeLessThanOrEqual(2);
        expect((await call('a right length')).json.result.content[0].text).toBe('fine ü');
      }
    });
  }
});

test('a large body reaches the backend whole, with its length, whatever client sends it', async () => {
  for (const begin of [startLegacyBackend, startModernBackend]) {
    const backend = await begin();
    const gateway = await startGateway({ '/mcp': backend.url });
    try {
      const text = 'x€'.repeat(800_000);
      const params = { name: 'echo', arguments: { text } };
      const session = await legacy(gateway.url());
      await Promise.all([modern(gateway.url(), 'tools/call', params), session.request('tools/call', params)]);
      const seen = backend.received('tools/call');
      expect(seen).toHaveLength(2);
      for (const { headers, body, json } of seen) {
        expect(headers['content-length']).toBe(String(body.length));
        expect(headers['transfer-encoding']).toBeUndefined();
        expect(json.params.arguments.text).toBe(text);
      }
    } finally {
      await gateway.close();
      await backend.close();
    }
  }
});

test('a backend that answers before it has read the request, and hangs up, is understood', async () => {
  const server = createServer((request, response) => {
    const length = Number(request.headers['content-length'] ?? 0);
    if (length < 100_000) {
      request.resume();
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}');
      return;
    }
    response.writeHead(413, { 'content-type': 'text/plain', connection: 'close' });
    response.end('too much for me');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}/mcp`;
  const gateway = await startGateway({ '/mcp': { backend: { url, era: 'modern' } } });
  try {
    const answer = await modern(gateway.url(), 'tools/call', {
      name: 'echo',
      arguments: { text: 'x'.repeat(1_000_000) },
    });
    expect(answer.json.error.code).toBe(-32603);
    expect(answer.json.error.message).toContain('413');
  } finally {
    await gateway.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test.each([
  [202, { 'content-type': 'application/json' }],
  [202, { 'content-type': 'application/json', 'content-length': '0' }],
  [202, { 'content-type': 'text/event-stream' }],
  [204, {}],
  [200, { 'content-type': 'application/json', 'content-length': '0' }],
  [200, {}],
] as const)('a backend may take notifications with an empty %i that says %o', async (status, headers) => {
  const backend = await startLegacyBackend({
    on: {
      'notifications/initialized': ({ res }) => {
        res.writeHead(status, headers).end();
        return undefined;
      },
    },
  });
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    expect((await modern(gateway.url(), 'tools/list')).json.result.tools).toHaveLength(1);
    const session = await legacy(gateway.url());
    expect(session.initialized?.status).toBe(202);
    expect(session.initialized?.text).toBe('');
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
  } finally {
    await gateway.close();
    await backend.close();
  }
});

test.each([
  ['text/html', '<html>Please log in</html>'],
  ['text/plain', '{"jsonrpc":"2.0","id":1,"result":{}}'],
  [undefined, '{"jsonrpc":"2.0","id":1,"result":{}}'],
  ['application/json', '{"error":"overloaded"}'],
  ['application/json', ''],
])('what is no answer of MCP (%s: %s) is an error that names its type', async (type, body) => {
  for (const begin of [startLegacyBackend, startModernBackend]) {
    const backend = await begin({
      on: {
        'tools/call': ({ res }) => {
          res.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(body);
          return undefined;
        },
      },
    });
    const gateway = await startGateway({ '/mcp': backend.url });
    try {
      const session = await legacy(gateway.url());
      const params = { name: 'echo', arguments: {} };
      for (const answer of [
        await modern(gateway.url(), 'tools/call', params, { id: 7 }),
        await session.request('tools/call', params, { id: 7 }),
      ]) {
        expect(answer.json).toMatchObject({ id: 7, error: { code: -32603 } });
        expect(answer.json.error.message).toContain(`HTTP 200 with ${type ?? 'no Content-Type'}`);
        expect(answer.json.error.message).not.toContain('lost');
      }
    } finally {
      await gateway.close();
      await backend.close();
    }
  }
});
