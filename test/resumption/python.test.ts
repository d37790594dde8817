import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { sleep, until } from '../support/net.js';
import { hasPython, PYTHON_NEEDED } from '../support/peers/index.js';
import { startResumption } from './rig.js';

const SCRIPT = fileURLToPath(new URL('../python/resuming.py', import.meta.url));

const opened: { close(): unknown }[] = [];
afterAll(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

/** A network between a client and the gateway that can lose the connections that something was sent on. */
async function network(target: string) {
  const { port } = new URL(target);
  const sent = new Map<Socket, string>();
  const server = createServer((socket) => {
    const upstream = connect(Number(port), '127.0.0.1');
    sent.set(socket, '');
    socket.on('data', (bytes) => void sent.set(socket, sent.get(socket) + bytes.toString()));
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => {}).on('close', () => upstream.destroy());
    upstream.on('error', () => {}).on('close', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.push({
    close() {
      server.close();
      for (const socket of sent.keys()) socket.destroy();
    },
  });
  const sayingThat = (text: string) => [...sent].filter(([, said]) => said.toLowerCase().includes(text));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    lose: (text: string) => {
      for (const [socket] of sayingThat(text)) socket.destroy();
    },
    saw: (text: string) => sayingThat(text).length > 0,
  };
}

/** The client of one line of the SDK, and what it has said. */
function startClient(line: string, url: string) {
  const python = join(process.env['ERAGATE_TEST_PYTHON'] ?? '', line, 'bin', 'python');
  const client = spawn(python, [SCRIPT, url], { stdio: ['ignore', 'pipe', 'ignore'] });
  opened.push({ close: () => client.kill() });
  let said = '';
  client.stdout.on('data', (bytes) => {
    said += bytes;
  });
  return { said: () => said, ended: once(client, 'exit') };
}

// At once, since these clients take a second over each return.
describe.skipIf(!hasPython).concurrent.each([
  ['1', 'LL'],
  ['2', 'LM'],
] as const)(`the client of Python's SDK %s (%s)${PYTHON_NEEDED}`, (line, cell) => {
  test('polls as often as its stream is closed', async () => {
    const rig = await startResumption(cell, { route: { timeouts: { stream: '100ms' } } });
    opened.push(rig);
    const between = await network(rig.gateway.url());
    const { said, ended } = startClient(line, between.url);
    const call = await until(() => rig.calls[0], 'the call', 20_000);
    const steps = Array.from({ length: 28 }, (_, n) => n + 1);
    for (const n of steps) {
      call.progress(n);
      await sleep(150);
    }
    expect(between.saw('last-event-id')).toBe(true);
    call.finish('whole');
    await ended;
    expect(said().trim().split(/\r?\n/)).toEqual([...steps.map((n) => `progress ${n}`), 'whole']);
  }, 60_000);

  test('has its result although the connection broke in mid-call', async () => {
    const rig = await startResumption(cell);
    opened.push(rig);
    const between = await network(rig.gateway.url());
    const { said, ended } = startClient(line, between.url);
    const call = await until(() => rig.calls[0], 'the call', 20_000);
    call.progress(1);
    await until(() => said().includes('progress 1'), 'the first progress', 10_000);
    between.lose('"tools/call"');
    call.progress(2);
    await until(() => between.saw('last-event-id'), 'the client to come back', 10_000);
    call.progress(3);
    call.finish('whole');
    await ended;
    expect(said().trim().split(/\r?\n/)).toEqual(['progress 1', 'progress 2', 'progress 3', 'whole']);
  }, 60_000);
});
