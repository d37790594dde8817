import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep } from '../../support/net.js';
import { legacy, modern, modernRequest, send, wire } from '../../support/raw.js';

const LIMIT = 256 * 1024;

/** The bytes of a request of a modern client, its head left to the test. */
function message(method = 'tools/list', params: Record<string, unknown> = {}) {
  const { headers, body } = modernRequest(method, params);
  const lines = Object.entries(headers as Record<string, string | undefined>)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n${lines.join('')}`;
  return { head, body: body as string };
}

const CLOSE = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

function chunked(text: string, size: number): string {
  const chunks = [];
  for (let at = 0; at < text.length; at += size) {
    const chunk = text.slice(at, at + size);
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  }
  return `${chunks.join('')}0\r\n\r\n`;
}

const statuses = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

// What is read of a body is the same for every era, so that one backend stands for all.
describe('the body of a request', () => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await startModernBackend();
    gateway = await startGateway({ '/mcp': backend.url }, { limits: { body: LIMIT } });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  describe('a body in chunks', () => {
    test.each([1, 7, 1_000_000])('of %i bytes is served', async (size) => {
      const { head, body } = message();
      const answer = await wire(
        gateway.url(),
        `${head}Transfer-Encoding: chunked\r\n\r\n${chunked(body, size)}${CLOSE}`,
      );
      expect(statuses(answer)).toEqual([200, 200]);
      expect(answer).toContain('"tools":');
    });

    test('with extensions and trailers is served', async () => {
      const { head, body } = message();
      const text = `${body.length.toString(16)};name=value\r\n${body}\r\n0\r\nX-Trailer: 1\r\n\r\n`;
      const answer = await wire(
        gateway.url(),
        `${head}Transfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n${text}${CLOSE}`,
      );
      expect(statuses(answer)).toEqual([200, 200]);
    });

    test('that are not well formed is refused, and the connection ends', async () => {
      const { head, body } = message();
      const answer = await wire(gateway.url(), `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n${body}`);
      expect(statuses(answer)).toEqual([400]);
      expect(answer).toContain('"jsonrpc":"2.0"');
    });

    test('that do not end is not passed on', async () => {
      const before = backend.requests.length;
      const { head, body } = message('tools/call', { name: 'echo' });
      await wire(
        gateway.url(),
        `${head}Transfer-Encoding: chunked\r\n\r\n${chunked(body, 50).slice(0, -5)}`,
        300,
      );
      expect(backend.requests).toHaveLength(before);
    });

    test('and with a length is refused: one of them lies', async () => {
      const { head, body } = message();
      const answer = await wire(
        gateway.url(),
        `${head}Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked(body, 50)}`,
      );
      expect(statuses(answer)).toEqual([400]);
    });
  });

  describe('a body whose Content-Length', () => {
    test('is right is served, and the connection with it', async () => {
      const { head, body } = message();
      const whole = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
      expect(statuses(await wire(gateway.url(), `${whole}${whole}${CLOSE}`))).toEqual([200, 200, 200]);
    });

    test('is too great waits for the rest, and is not passed on when the client gives up', async () => {
      const before = backend.requests.length;
      const { head, body } = message('tools/call', { name: 'echo' });
      const answer = await wire(
        gateway.url(),
        `${head}Content-Length: ${body.length + 7}\r\n\r\n${body}`,
        300,
      );
      expect(answer).toBe('');
      expect(backend.requests).toHaveLength(before);
    });

    test('is too great, where the client then closes its side, is refused', async () => {
      const before = backend.requests.length;
      const { head, body } = message('tools/call', { name: 'echo' });
      const answer = await halfClosed(
        gateway.url(),
        `${head}Content-Length: ${body.length + 7}\r\n\r\n${body}`,
      );
      expect(statuses(answer).filter((status) => status < 400)).toEqual([]);
      expect(backend.requests).toHaveLength(before);
    });

    test('is too small is refused, and what is left of it is no request', async () => {
      const before = backend.requests.length;
      const { head, body } = message('tools/call', { name: 'echo' });
      const answer = await wire(gateway.url(), `${head}Content-Length: ${body.length - 2}\r\n\r\n${body}`);
      expect(new Set(statuses(answer))).toEqual(new Set([400]));
      expect(backend.requests).toHaveLength(before);
    });

    test.each(['-1', '1e3', '0x10', '12abc', '+5', '5, 5', '99999999999999999999'])(
      'is %s is refused',
      async (length) => {
        const { head, body } = message();
        const answer = await wire(gateway.url(), `${head}Content-Length: ${length}\r\n\r\n${body}`);
        expect(statuses(answer)[0]).toBeGreaterThanOrEqual(400);
        expect(statuses(answer)[0]).toBeLessThan(500);
      },
    );

    test('is missing, with no chunks either, is taken for an empty body', async () => {
      const { head } = message();
      expect(statuses(await wire(gateway.url(), `${head}\r\n${CLOSE}`))).toEqual([400, 200]);
    });
  });

  test.each([0, 1, 4])('an empty body, or white space alone (%i), is not JSON', async (spaces) => {
    const answer = await send(gateway.url(), {
      body: ' '.repeat(spaces),
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(400);
    expect(answer.json.error.code).toBe(-32700);
  });

  test('a body that comes byte by byte, with pauses, is served', async () => {
    const { head, body } = message();
    const answer = await slowly(
      gateway.url(),
      `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      body,
    );
    expect(statuses(answer)).toEqual([200]);
  });

  test('slow bodies of some clients do not hold up the requests of others', async () => {
    const { head, body } = message();
    const slow = Array.from({ length: 20 }, () =>
      slowly(gateway.url(), `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`, body),
    );
    const begun = Date.now();
    for (let i = 0; i < 10; i++) expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    expect(Date.now() - begun).toBeLessThan(1_000);
    for (const answer of await Promise.all(slow)) expect(statuses(answer)).toEqual([200]);
  });

  test('a client that asks before it sends is told to go on', async () => {
    const { head, body } = message();
    const answer = await wire(
      gateway.url(),
      `${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
    expect(statuses(answer)).toEqual([100, 200]);
  });

  describe('compressed with', () => {
    const { head, body } = message('tools/call', { name: 'echo', arguments: { text: 'ü'.repeat(5_000) } });
    const post = (bytes: Buffer, encoding: string) =>
      wire(
        gateway.url(),
        Buffer.concat([
          Buffer.from(
            `${head}Content-Encoding: ${encoding}\r\nContent-Length: ${bytes.length}\r\nConnection: close\r\n\r\n`,
          ),
          bytes,
        ]),
      );

    test.each([
      ['gzip', gzipSync],
      ['GZIP', gzipSync],
      ['x-gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
      ['identity', (text: string) => Buffer.from(text)],
    ] as const)('%s, a body is served, and reaches the backend as it was', async (encoding, compress) => {
      const answer = await post(compress(body), encoding);
      expect(statuses(answer)).toEqual([200]);
      const [seen] = backend.received('tools/call').slice(-1);
      expect(seen?.json.params.arguments.text).toBe('ü'.repeat(5_000));
      expect(seen?.headers['content-encoding']).toBeUndefined();
    });

    test.each(['compress', 'zstd', 'gzip, br', 'aes128gcm', 'constructor', 'none'])(
      '%s, a body is refused',
      async (encoding) => {
        const answer = await post(Buffer.from(body), encoding);
        expect(statuses(answer)).toEqual([415]);
        expect(answer).toContain('Content-Encoding');
      },
    );

    test.each([
      ['what is not gzip', Buffer.from(body)],
      ['gzip that is cut off', gzipSync(body).subarray(0, -10)],
      ['gzip with a wrong sum', Buffer.concat([gzipSync(body).subarray(0, -8), Buffer.alloc(8)])],
      ['nothing', Buffer.alloc(0)],
    ])('%s, a body is refused as broken', async (_what, bytes) => {
      const answer = await post(bytes, 'gzip');
      expect(statuses(answer)).toEqual([400]);
    });

    test.each([
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const)(
      '%s, a small body that unpacks to more than the limit is refused',
      async (encoding, compress) => {
        const bomb = compress(Buffer.alloc(16 * 1024 * 1024, 0x20));
        expect(bomb.length).toBeLessThan(LIMIT);
        expect(statuses(await post(bomb, encoding))).toEqual([413]);
      },
    );
  });

  describe('larger than the limit', () => {
    const big = { name: 'echo', arguments: { text: 'x'.repeat(LIMIT) } };

    test('a body is refused with 413, whichever era sends it', async () => {
      const before = backend.received('tools/call').length;
      const session = await legacy(gateway.url());
      for (const answer of [
        await modern(gateway.url(), 'tools/call', big),
        await session.request('tools/call', big),
      ]) {
        expect(answer.status).toBe(413);
        expect(answer.json).toMatchObject({ id: null, error: { code: -32000 } });
        expect(answer.json.error.message).toContain(String(LIMIT));
      }
      expect(backend.received('tools/call')).toHaveLength(before);
    });

    test('a body in chunks, of no length, is refused as well', async () => {
      const { head, body } = message('tools/call', big);
      const answer = await wire(
        gateway.url(),
        `${head}Transfer-Encoding: chunked\r\n\r\n${chunked(body, 60_000)}${CLOSE}`,
      );
      expect(statuses(answer)).toEqual([413, 200]);
    });

    test('a body just below it is served', async () => {
      const { body } = message('tools/call', { name: 'echo', arguments: { text: '' } });
      const text = 'x'.repeat(LIMIT - body.length - 10);
      const answer = await modern(gateway.url(), 'tools/call', { name: 'echo', arguments: { text } });
      expect(answer.json.result.structuredContent.text).toHaveLength(text.length);
    });

    test('a client that is still sending sees the answer, and not a reset connection', async () => {
      for (let i = 0; i < 3; i++) {
        expect(await upload(gateway.url(), 40 * 1024 * 1024)).toBe(413);
      }
    });

    test('a client that never stops sending is cut off', async () => {
      const { hostname, port } = new URL(gateway.url());
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
      });
      socket.on('error', () => {});
      socket.write(`${message().head}Transfer-Encoding: chunked\r\n\r\n`);
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
      const timer = setInterval(() => socket.write(chunk), 20);
      const begun = Date.now();
      // Being cut off may look like an error, which `once` of node:events would reject with.
      await new Promise((resolve) => socket.on('close', resolve));
      clearInterval(timer);
      expect(statuses(text)).toEqual([413]);
      expect(Date.now() - begun).toBeGreaterThan(1_000);
      expect(Date.now() - begun).toBeLessThan(6_000);
    });

    test('a length above it is refused before the body comes', async () => {
      const { head } = message();
      const answer = await wire(gateway.url(), `${head}Content-Length: ${LIMIT + 1}\r\n\r\n{`, 300);
      expect(statuses(answer)).toEqual([413]);
    });
  });

  test('headers larger than they may be are refused in the words of JSON-RPC', async () => {
    const { head, body } = message();
    const pad = `X-Pad: ${'x'.repeat(80_000)}\r\n`;
    const answer = await wire(gateway.url(), `${head}${pad}Content-Length: ${body.length}\r\n\r\n${body}`);
    expect(statuses(answer)).toEqual([431]);
    expect(answer).toContain('"jsonrpc":"2.0"');
  });

  test('headers of 30 KB are served, where the backend does not get them', async () => {
    const { head, body } = message();
    const params = Array.from({ length: 30 }, (_, i) => `Cookie: c${i}=${'x'.repeat(1_000)}\r\n`).join('');
    const answer = await wire(
      gateway.url(),
      `${head}${params}Content-Length: ${body.length}\r\n\r\n${body}${CLOSE}`,
    );
    expect(statuses(answer)).toEqual([200, 200]);
  });

  test('what is not HTTP is refused in the words of JSON-RPC', async () => {
    for (const bytes of [
      'hello\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00',
      'GET / HTTP/9.9\r\n\r\n',
      '{"jsonrpc":"2.0"}',
    ]) {
      const answer = await wire(gateway.url(), bytes, 300);
      expect(statuses(answer)).toEqual([400]);
      expect(answer).toContain('"jsonrpc":"2.0"');
    }
  });
});

/** Sends bytes, ends its own side, and reads what comes. */
function halfClosed(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () =>
      socket.end(bytes),
    );
    socket.setTimeout(500, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
}

async function slowly(url: string, head: string, body: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setNoDelay(true);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write(head);
  for (let at = 0; at < body.length; at += 20) {
    socket.write(body.slice(at, at + 20));
    await sleep(20);
  }
  await closed;
  return text;
}

/** Uploads until all is sent or the other side has had enough, and gives the status of the answer. */
function upload(url: string, length: number): Promise<number> {
  return new Promise((resolve) => {
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    let sent = 0;
    let status = 0;
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const request = httpRequest(url, { method: 'POST', headers, agent: false });
    const more = (): void => {
      if (request.destroyed) return;
      if (sent >= length) request.end();
      else {
        sent += chunk.length;
        request.write(chunk, () => setImmediate(more));
      }
    };
    request.on('response', (response) => {
      status = response.statusCode ?? 0;
      response.resume();
    });
    request.on('error', () => {});
    request.on('close', () => resolve(status));
    more();
  });
}
