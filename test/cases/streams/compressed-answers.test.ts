import type { Transform } from 'node:stream';
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createGzip,
  deflateSync,
  gzipSync,
} from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import {
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { type LegacySession, legacy, modern, openModern, type RawStream, send } from '../../support/raw.js';

const STREAMED: Record<string, () => Transform & { flush(done: () => void): void }> = {
  gzip: () => createGzip(),
  deflate: () => createDeflate(),
  br: () => createBrotliCompress(),
};
const AT_ONCE: Record<string, (text: string) => Buffer> = {
  gzip: (text) => gzipSync(text),
  'x-gzip': (text) => gzipSync(text),
  GZIP: (text) => gzipSync(text),
  deflate: (text) => deflateSync(text),
  br: (text) => brotliCompressSync(text),
  identity: (text) => Buffer.from(text),
};

const answered = ({ frame }: Step, text = 'fine'): string =>
  JSON.stringify(frame({ result: { resultType: 'complete', content: [{ type: 'text', text }] } }));

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  let session: LegacySession;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway({ '/mcp': backend.url });
    session = await legacy(gateway.url());
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  const params = (encoding = '') => ({
    name: 'echo',
    arguments: { encoding },
    _meta: { progressToken: 'p' },
  });
  /** Takes what the client accepts, and what the backend is to compress with. */
  const clients: Record<string, (accepts?: string, encoding?: string) => Promise<RawStream>> = {
    modern: (accepts, encoding) =>
      openModern(gateway.url(), 'tools/call', params(encoding), { headers: { 'accept-encoding': accepts } }),
    legacy: (accepts, encoding) =>
      session.open('tools/call', params(encoding), { headers: { 'accept-encoding': accepts } }),
  };

  describe.each(Object.keys(clients))('toward a %s client', (client) => {
    const call = clients[client] as (typeof clients)[string];

    test('that compresses its streams with gzip, deflate or br is passed on event by event', async () => {
      /** Events that the client has read, by encoding. */
      const read: Record<string, number> = {};
      backend.on('tools/call', async (step) => {
        const { encoding } = step.params.arguments;
        const compress = STREAMED[encoding]?.();
        const { res } = step;
        res.writeHead(200, {
          'content-type': 'text/event-stream',
          ...(compress && { 'content-encoding': encoding }),
        });
        res.flushHeaders();
        compress?.pipe(res);
        const write = async (text: string): Promise<void> => {
          if (compress === undefined) res.write(text);
          else {
            compress.write(text);
            await new Promise<void>((done) => compress.flush(done));
          }
        };
        const { progressToken } = step.params._meta;
        for (let progress = 0; progress < 4; progress++) {
          const note = {
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken, progress },
          };
          await write(`data: ${JSON.stringify(note)}\n\n`);
          // The next one is not written before this one has gone through.
          await until(() => (read[encoding] ?? 0) > progress, `event ${progress} in ${encoding}`);
        }
        await write(`data: ${answered(step)}\n\n`);
        (compress ?? res).end();
        return undefined;
      });
      await Promise.all(
        [...Object.keys(STREAMED), 'none'].map(async (encoding) => {
          const stream = await call('gzip, br', encoding);
          expect(stream.headers['content-encoding']).toBeUndefined();
          expect(stream.headers['content-length']).toBeUndefined();
          for (let i = 0; i < 5; i++) {
            await stream.next();
            read[encoding] = i + 1;
          }
          expect((await stream.done).json.result.content[0].text).toBe('fine');
        }),
      );
    });

    test.each(Object.keys(AT_ONCE))('that compresses its JSON with %s is read', async (encoding) => {
      const text = 'ü'.repeat(200_000);
      backend.on('tools/call', (step) => {
        const bytes = (AT_ONCE[encoding] as (text: string) => Buffer)(answered(step, text));
        step.res.writeHead(200, {
          'content-type': 'application/json',
          'content-encoding': encoding,
          'content-length': bytes.length,
        });
        step.res.end(bytes);
        return undefined;
      });
      const whole = await (await call('gzip, br')).done;
      expect(whole.headers['content-encoding']).toBeUndefined();
      expect(whole.headers['content-length']).toBe(String(whole.bytes.length));
      expect(whole.json.result.content[0].text).toBe(text);
    });

    test.each(['identity', 'none', 'UTF-8', 'utf8', 'binary', '8bit', ''])(
      'that compresses nothing, and calls that "%s", is read',
      async (encoding) => {
        backend.on('tools/call', (step) => {
          step.res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding });
          step.res.end(answered(step));
          return undefined;
        });
        expect((await (await call()).done).json.result.content[0].text).toBe('fine');
      },
    );

    test.each([
      ['gzip that is none', 'gzip', (bytes: Buffer) => Buffer.from(bytes.toString('hex'))],
      [
        'gzip with a wrong sum',
        'gzip',
        (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -8), Buffer.alloc(8, 1)]),
      ],
      ['gzip that is cut off', 'gzip', (bytes: Buffer) => bytes.subarray(0, 40)],
      ['br that is cut off', 'br', (bytes: Buffer) => bytes.subarray(0, 20)],
      ['br that is none', 'br', () => Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}')],
      ['an encoding that nobody knows', 'snappy', (bytes: Buffer) => bytes],
      ['an encoding that is a name in JavaScript', 'constructor', (bytes: Buffer) => bytes],
      ['two encodings', 'gzip, br', (bytes: Buffer) => bytes],
      ['nothing at all', 'gzip', () => Buffer.alloc(0)],
    ] as const)('that answers with %s is an error at once', async (what, encoding, spoil) => {
      for (const type of ['application/json', 'text/event-stream']) {
        backend.on('tools/call', (step) => {
          const text = type === 'application/json' ? answered(step) : `data: ${answered(step)}\n\n`;
          const bytes = spoil(encoding === 'br' ? brotliCompressSync(text) : gzipSync(text));
          step.res.writeHead(200, { 'content-type': type, 'content-encoding': encoding });
          step.res.end(bytes);
          return undefined;
        });
        const begun = Date.now();
        const whole = await (await call()).done;
        expect(Date.now() - begun).toBeLessThan(1_000);
        // A sum that is wrong stands behind a whole message: whether that was read before is a matter of chunks.
        if (what === 'gzip with a wrong sum' && whole.json.result) continue;
        expect(whole.json.error.code, type).toBe(-32603);
      }
    });

    test('that compresses a refusal is understood', async () => {
      backend.on('tools/call', ({ res }) => {
        res.writeHead(401, {
          'content-type': 'text/plain',
          'content-encoding': 'gzip',
          'www-authenticate': 'Bearer realm="x"',
        });
        res.end(gzipSync('log in first'));
        return undefined;
      });
      const whole = await (await call()).done;
      expect(whole.status).toBe(401);
      expect(whole.headers['www-authenticate']).toBe('Bearer realm="x"');
      expect(detailOf(gateway, whole)).toContain('log in first');
    });
  });

  test('is asked for no compression', () => {
    const asked = backend.requests
      .filter(({ method }) => method !== 'DELETE')
      .map(({ headers }) => headers['accept-encoding']);
    expect(new Set(asked)).toEqual(new Set(['identity']));
  });

  test('whose compressed answer unpacks to more than a result may be is cut off', async () => {
    const front = await startGateway({ '/mcp': backend.url }, { limits: { result: '512KiB' } });
    try {
      for (const type of ['application/json', 'text/event-stream']) {
        for (const compress of [gzipSync, brotliCompressSync]) {
          backend.on('tools/call', (step) => {
            const bytes = compress(Buffer.alloc(4 * 1024 * 1024, 0x61));
            step.res.writeHead(200, {
              'content-type': type,
              'content-encoding': compress === gzipSync ? 'gzip' : 'br',
            });
            step.res.end(bytes);
            return undefined;
          });
          const answer = await modern(front.url(), 'tools/call', params());
          expect(answer.json.error.code).toBe(-32603);
          expect(answer.json.error.message).toMatch(/larger/);
        }
      }
    } finally {
      await front.close();
    }
  });
});

test('the gateway itself compresses nothing', async () => {
  const backend = await startLegacyBackend();
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const headers = { 'accept-encoding': 'gzip, deflate, br, zstd, *' };
    const session = await legacy(gateway.url(), { headers });
    const stream = await session.listen(headers);
    for (const answer of [
      session.initialize,
      await session.request('tools/list', {}, { headers }),
      await modern(gateway.url(), 'tools/list', {}, { headers }),
      await send(gateway.url('/healthz'), { headers }),
      stream,
    ]) {
      expect(answer.headers['content-encoding']).toBeUndefined();
    }
    stream.abort();
  } finally {
    await gateway.close();
    await backend.close();
  }
});

test('an answer that was compressed with a dictionary of its own stream is flushed as a whole', async () => {
  // One event in many flushed pieces, as a server writes that flushes by time and not by event.
  const backend = await startModernBackend({
    on: {
      'tools/call': async (step) => {
        const compress = createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
        step.res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'br' });
        compress.pipe(step.res);
        const text = `data: ${answered(step, 'x'.repeat(50_000))}\n\n`;
        for (let at = 0; at < text.length; at += 5_000) {
          compress.write(text.slice(at, at + 5_000));
          await new Promise<void>((done) => compress.flush(done));
        }
        return undefined;
      },
    },
  });
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const answer = await modern(gateway.url(), 'tools/call', { name: 'echo' });
    expect(answer.json.result.content[0].text).toHaveLength(50_000);
  } finally {
    await gateway.close();
    await backend.close();
  }
});
