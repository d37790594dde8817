import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep } from '../../support/net.js';
import { legacy, modernRequest } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const KEEP_ALIVE_MS = 100;
/** Longer than the pause after which a slow response becomes a stream, and than a tick of the gateway. */
const SLOWLY_MS = KEEP_ALIVE_MS + 600;
const BODY_BYTES = 4_096;

type Headers = Record<string, string | undefined>;

/** Sends the head of a POST and all but the end of its body at once, the end later; gives the whole response. */
async function upload(url: string, headers: Headers, body: string, announced?: number): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  const lines = Object.entries({
    host: 'localhost',
    connection: 'close',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': String(announced ?? Buffer.byteLength(body)),
    ...headers,
  }).filter(([, value]) => value !== undefined);
  socket.write(
    `POST ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  );
  socket.write(body.slice(0, 10));
  await sleep(SLOWLY_MS);
  expect(received).toBe('');
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.write(body.slice(10));
  await closed;
  return received;
}

const statusOf = (response: string): number => Number(response.split(' ')[1]);

describe.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway(
      { '/mcp': backend.url },
      { keepAlive: `${KEEP_ALIVE_MS}ms`, limits: { body: BODY_BYTES } },
    );
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  const slow = (headers: Headers, body: string) => upload(gateway.url(), headers, body);

  test('nothing is written before a slow request has been read: each refusal has its own status', async () => {
    const { headers, body } = modernRequest('tools/list') as { headers: Headers; body: string };
    const session = await legacy(gateway.url());
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    const statuses = await Promise.all([
      slow({ 'mcp-session-id': 'unknown' }, list),
      slow({}, list),
      slow({ ...headers, 'mcp-method': 'tools/call' }, body),
      slow(headers, '{"jsonrpc":"2.0","id":1,"method":'),
      slow(
        { 'transfer-encoding': 'chunked', 'content-length': undefined },
        chunked('x'.repeat(2 * BODY_BYTES)),
      ),
      slow(headers, body),
      slow(session.headers, list),
    ]);
    expect(statuses.map(statusOf)).toEqual([404, 400, 400, 400, 413, 200, 200]);
  });
});

function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}
