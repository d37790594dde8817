import { randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Cell } from '../../support/cells.js';
import { COLLECTS_AT_SIGNAL, memoryOf, settle } from '../../support/memory.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type GatewayProcess, startGatewayProcess } from '../../support/process.js';
import { type LegacySession, legacy, modern, modernRequest } from '../../support/raw.js';

const MiB = 1024 * 1024;
/** Limits of the gateway as they are unless set otherwise. */
const BODY_LIMIT = 4 * MiB;
const RESULT_LIMIT = 64 * MiB;
/** Room for the envelope around what is large. */
const ENVELOPE = 8 * 1024;

const BIG = Buffer.from(randomBytes((RESULT_LIMIT * 3) / 4).toString('base64')).subarray(
  0,
  RESULT_LIMIT - ENVELOPE,
);

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
}

/** Sends a request and gathers the answer without looking into it. */
function post(
  url: string,
  headers: Record<string, string | undefined>,
  body: string | Buffer,
): Promise<Answer> {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      agent: false,
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...given,
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    request.end(body);
  });
}

const FRAMINGS = [
  'JSON of announced length',
  'JSON in chunks',
  'one event',
  'an event of many lines',
] as const;
type Framing = (typeof FRAMINGS)[number];

/** Answers with a large result in the given framing. */
async function answerLarge(
  res: ServerResponse,
  id: unknown,
  framing: Framing,
  size: number,
  resultType: string,
) {
  const head = Buffer.from(
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${resultType}"content":[{"type":"text","text":"`,
  );
  const tail = Buffer.from('"}],"structuredContent":{"d":1.0}}}');
  const text = BIG.subarray(0, size);
  const write = (bytes: Buffer | string) =>
    new Promise<void>((resolve) => (res.write(bytes) ? resolve() : res.once('drain', resolve)));
  if (framing.startsWith('JSON')) {
    const length = head.length + text.length + tail.length;
    res.writeHead(200, {
      'content-type': 'application/json',
      ...(framing === 'JSON in chunks' ? {} : { 'content-length': length }),
    });
    for (const part of [head, text, tail]) {
      for (let at = 0; at < part.length; at += MiB) await write(part.subarray(at, at + MiB));
    }
  } else {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    if (framing === 'one event') {
      await write('data: ');
      for (const part of [head, text, tail]) await write(part);
    } else {
      // Line ends may stand between tokens only.
      const parts = [head.subarray(0, head.length - 1), Buffer.from('"'), text, tail];
      await write('data: ');
      await write(parts[0] as Buffer);
      await write('\r\ndata: ');
      for (const part of parts.slice(1)) await write(part);
      await write('\r\ndata: ');
    }
    await write('\n\n');
  }
  res.end();
}

describe('large bodies', () => {
  const backends: Partial<Record<'L' | 'M', ScriptedBackend>> = {};
  const sessions: Partial<Record<Cell, LegacySession>> = {};
  let gateway: GatewayProcess;
  beforeAll(async () => {
    backends.L = await startLegacyBackend();
    backends.M = await startModernBackend();
    const routes = {
      '/L': { backend: { url: backends.L.url, era: 'legacy' } },
      '/M': { backend: { url: backends.M.url, era: 'modern' } },
    };
    gateway = await startGatewayProcess(routes, {}, { node: COLLECTS_AT_SIGNAL });
    for (const cell of ['LL', 'LM'] as const) sessions[cell] = await legacy(gateway.url(`/${cell[1]}`));
    for (const path of ['/L', '/M']) await modern(gateway.url(path), 'tools/list');
  });
  afterAll(async () => {
    await gateway?.close();
    await backends.L?.close();
    await backends.M?.close();
  });

  /** URL, headers and body of a call in this cell. */
  function callOf(cell: Cell, args: string): { url: string; headers: Record<string, string>; body: string } {
    const url = gateway.url(`/${cell[1]}`);
    if (cell[0] === 'L') {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":${args}}}`;
      return { url, headers: sessions[cell]?.headers as Record<string, string>, body };
    }
    const { headers, body } = modernRequest('tools/call', { name: 'big', arguments: '@' }, { id: 1 });
    return { url, headers: headers as Record<string, string>, body: String(body).replace('"@"', args) };
  }
  const backendOf = (cell: Cell) => backends[cell[1] as 'L' | 'M'] as ScriptedBackend;

  describe.each(CELLS)('%s', (cell) => {
    // The same code writes the answers of the two middle cells.
    test.each(cell[0] === cell[1] ? FRAMINGS : FRAMINGS.slice(1, 3))(
      'a result of 64 MiB passes intact, and is not held many times over: %s',
      async (framing) => {
        const resultType = cell[1] === 'M' ? '"resultType":"complete",' : '';
        backendOf(cell).on('tools/call', async ({ id, res }) => {
          await answerLarge(res, id, framing, BIG.length, resultType);
          return undefined;
        });
        const { url, headers, body } = callOf(cell, '{}');
        await settle(gateway.child);
        const idle = memoryOf(gateway.child)?.now;
        const startedAt = Date.now();
        const { status, bytes } = await post(url, headers, body);
        expect(Date.now() - startedAt).toBeLessThan(8_000);
        expect(status).toBe(200);
        const at = bytes.indexOf(BIG.subarray(0, 64));
        expect(bytes.subarray(at, at + BIG.length).equals(BIG)).toBe(true);
        expect(bytes.subarray(at + BIG.length).toString()).toContain('"structuredContent":{"d":1.0}');
        const memory = memoryOf(gateway.child);
        if (memory === undefined || idle === undefined) return;
        expect((memory.peak - idle) / BIG.length).toBeLessThan(3.5);
      },
    );

    test('a request of 4 MiB passes intact', async () => {
      backendOf(cell).on('tools/call', undefined);
      const empty = callOf(cell, '{"text":"","d":1.0}').body.length;
      const text = BIG.subarray(0, BODY_LIMIT - empty).toString('latin1');
      const { url, headers, body } = callOf(cell, `{"text":"${text}","d":1.0}`);
      expect(Buffer.byteLength(body)).toBe(BODY_LIMIT);
      const { status, bytes } = await post(url, headers, body);
      expect(status).toBe(200);
      expect(bytes.includes(text)).toBe(true);
      expect(backendOf(cell).received('tools/call').at(-1)?.text).toContain(`{"text":"${text}","d":1.0}`);
      backendOf(cell).requests.length = 0;
    });

    test.each(['by its announced length', 'by what comes'])(
      'a request of more is refused %s',
      async (how) => {
        const received = backendOf(cell).requests.length;
        const { url, headers, body } = callOf(cell, `{"text":"${'x'.repeat(BODY_LIMIT)}"}`);
        const framing = how === 'by what comes' ? { 'transfer-encoding': 'chunked' } : {};
        const { status, bytes, headers: answered } = await post(url, { ...headers, ...framing }, body);
        expect(status).toBe(413);
        expect(answered['content-type']).toMatch(/^application\/json/);
        expect(JSON.parse(bytes.toString())).toMatchObject({
          jsonrpc: '2.0',
          error: { code: -32000, message: expect.stringContaining(String(BODY_LIMIT)) },
        });
        expect(backendOf(cell).requests.length).toBe(received);
      },
    );

    test.each(['JSON of announced length', 'JSON in chunks', 'one event'] as const)(
      'a result above the limit is an error to its caller alone: %s',
      async (framing) => {
        backendOf(cell).on('tools/call', async ({ id, res, params }) => {
          if (params.arguments.small === true) return { result: { content: [], resultType: 'complete' } };
          const filler = `"filler":"${'x'.repeat(2 * ENVELOPE)}",`;
          await answerLarge(res, id, framing, BIG.length, filler);
          return undefined;
        });
        const { url, headers, body } = callOf(cell, '{}');
        const small = callOf(cell, '{"small":true}');
        const [large, other] = await Promise.all([
          post(url, headers, body),
          post(small.url, small.headers, small.body.replace('"id":1', '"id":2')),
        ]);
        const answer = JSON.parse(large.bytes.toString());
        expect(answer).toMatchObject({
          id: 1,
          error: { code: -32603, message: expect.stringContaining('larger than the gateway accepts') },
        });
        expect(JSON.parse(other.bytes.toString()).result.content).toEqual([]);
      },
    );
  });
});
