import { request } from 'node:http';
import { expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { type Loose, until } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { startRig, textOf } from './rig.js';

const COUNT = 16_000;
const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Posts a call, and does not read the response before `read` is called. */
function unread(url: string, headers: Record<string, string | undefined>, body: Loose) {
  let read: (() => void) | undefined;
  const text = new Promise<string>((resolve, reject) => {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    const sent = request(url, { method: 'POST', headers: { ...ACCEPT, ...given } as Record<string, string> });
    sent.on('error', reject);
    sent.on('response', (response) => {
      read = () => {
        let all = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          all += chunk;
        });
        response.on('end', () => resolve(all));
      };
    });
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', ...body }));
  });
  return {
    answered: () => read !== undefined,
    async read() {
      read?.();
      return text;
    },
  };
}

test('a client that does not read pauses only its own process, and loses nothing', async () => {
  const { url, flooded } = await startRig({ backend: { era: 'legacy' } });
  const session = await legacy(url);
  const flood = unread(url, session.headers, { params: { name: 'flood', arguments: { count: COUNT } } });
  await until(() => flood.answered() && flooded() > 0, 'the flood to begin');
  // It stops once all buffers between the two are full.
  let before = -1;
  await until(async () => {
    const now = flooded();
    const still = now === before;
    before = now;
    await modern(url, 'tools/call', { name: 'slow', arguments: { ms: 300 } });
    return still;
  }, 'the flood to stand still');
  expect(flooded()).toBeLessThan(COUNT);
  const other = await legacy(url);
  expect(textOf((await other.request('tools/call', { name: 'echo', arguments: {} })).json)).toContain('args');
  const text = await flood.read();
  const numbers = [...text.matchAll(/"data":"(\d+) y/g)].map(([, number]) => Number(number));
  expect(numbers).toHaveLength(COUNT);
  expect(numbers.every((number, i) => number === i)).toBe(true);
  expect(text).toContain('flooded');
});

test('a shared process is not paused: a client that does not read misses notifications', async () => {
  const { url } = await startRig({ backend: { era: 'modern' }, server: { era: 'modern' } });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/logLevel': 'debug',
  };
  const flood = unread(
    url,
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'flood' },
    { params: { name: 'flood', arguments: { count: COUNT }, _meta: meta } },
  );
  await until(flood.answered, 'the flood to begin');
  expect((await modern(url, 'tools/call', { name: 'slow', arguments: { ms: 300 } })).status).toBe(200);
  expect(await flood.read()).toContain('flooded');
});

test.each(['ping', 'roots/list'])(
  'a process that keeps sending %s and reads no answers is ended before the answers accumulate',
  async (method) => {
    const { gateway, url, logged, running, started } = await startRig({
      backend: { era: 'legacy', process: 'shared' },
    });
    const call = { name: 'pester', arguments: { method, count: 1_000, bytes: 64 * 1024 } };
    const answer = await modern(url, 'tools/call', call);
    expect(answer.json).toMatchObject({ error: { code: -32603 } });
    expect(detailOf(gateway, answer)).toContain('it does not read its standard input');
    expect(logged('unusable').map(({ reason }) => reason)).toEqual(['it does not read its standard input']);
    // The next call starts another one.
    const next = await modern(url, 'tools/call', { name: 'echo', arguments: {} });
    expect(next.status).toBe(200);
    await until(() => running().length <= 1 && started().length > 1, 'the first process to end');
  },
);
