import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { type GatewayProcess, startGatewayProcess } from '../../support/process.js';
import { legacy, modern, modernRequest, open, openModern, type RawStream, send } from '../../support/raw.js';

const opened: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const DONE = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] };

interface Scene {
  old: ScriptedBackend;
  young: ScriptedBackend;
  gateway: GatewayProcess;
}

/** A gateway before a legacy and a modern backend, whose tools take as long as they are told to. */
async function start(more: { on?: Record<string, Loose>; overrides?: Loose } = {}): Promise<Scene> {
  const capabilities = { tools: { listChanged: true } };
  const slow = async ({ params }: Loose) => {
    await sleep(params.arguments?.ms ?? 0);
    return { result: DONE };
  };
  const listen = ({ stream, id, params }: Loose): undefined => {
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
    stream().event({
      jsonrpc: '2.0',
      method: ACKNOWLEDGED,
      params: { _meta, notifications: params.notifications },
    });
    return undefined;
  };
  const on = { 'tools/call': slow, 'subscriptions/listen': listen, ...more.on };
  const old = await startLegacyBackend({ capabilities, on });
  const young = await startModernBackend({ capabilities, on });
  const gateway = await startGatewayProcess({ '/old': old.url, '/young': young.url }, more.overrides);
  opened.push(old, young, gateway);
  return { old, young, gateway };
}

const call = (ms: number) => ({ name: 'slow', arguments: { ms } });
/** For calls that never end. */
const SHORT_GRACE = { shutdown: { grace: '1s' } };
const LISTEN = { notifications: { toolsListChanged: true } };

async function listening(gateway: GatewayProcess, path: string, id: string): Promise<RawStream> {
  const stream = await openModern(gateway.url(path), 'subscriptions/listen', LISTEN, { id });
  expect((await stream.next()).json.method).toBe(ACKNOWLEDGED);
  return stream;
}

describe.concurrent('a signal', () => {
  test('lets calls complete, ends streams in the proper way and sessions too, refuses new requests, exits with 0', async () => {
    const { old, young, gateway } = await start();
    const sessions = await Promise.all(
      Array.from({ length: 50 }, (_, i) => legacy(gateway.url(i % 5 === 0 ? '/young' : '/old'))),
    );
    const streams = await Promise.all(sessions.map((session) => session.listen()));
    const subscriptions = {
      'listen:0': await listening(gateway, '/young', 'listen:0'),
      'listen:1': await listening(gateway, '/old', 'listen:1'),
    };
    await until(() => old.streams.length >= 40, 'the streams of the backend');
    const [first, second] = [sessions[1], sessions[0]];
    const calls = [
      modern(gateway.url('/old'), 'tools/call', call(2_000)),
      modern(gateway.url('/young'), 'tools/call', call(2_000)),
      first?.request('tools/call', call(2_000)),
      second?.request('tools/call', call(2_000)),
    ];
    const { headers, body } = modernRequest('tools/call', call(2_000));
    const piped = pipelined(gateway.url('/old'), headers as Record<string, string>, body as string);
    await until(
      () => old.received('tools/call').length + young.received('tools/call').length === 5,
      'the calls to be in flight',
    );

    gateway.kill('SIGTERM');
    await until(
      () => gateway.child.exitCode !== null || refused(gateway.url('/old')),
      'new requests to be refused',
      1_000,
    );
    piped.askAgain();

    for (const stream of streams) await stream.done;
    for (const [id, stream] of Object.entries(subscriptions)) {
      const whole = await stream.done;
      const last = whole.events.at(-1)?.json;
      expect(last).toMatchObject({
        jsonrpc: '2.0',
        id,
        result: {
          resultType: 'complete',
          _meta: { 'io.modelcontextprotocol/subscriptionId': id },
        },
      });
    }
    for (const answer of await Promise.all(calls)) {
      expect(answer?.status).toBe(200);
      expect(answer?.json.result.content).toEqual(DONE.content);
    }
    const { code, ms } = await gateway.ended;
    expect(code).toBe(0);
    expect(ms).toBeGreaterThan(1_000);
    expect(ms).toBeLessThan(9_000);
    // Every session that the gateway opened is ended, its own among them.
    expect(old.sessions.size).toBe(0);
    expect(old.requests.filter(({ method }) => method === 'DELETE').length).toBeGreaterThanOrEqual(40);
    const answers = await piped.text;
    expect(answers).toContain('"text":"done"');
    expect(answers).not.toMatch(/200 OK.*200 OK/s);
    expect(gateway.logs.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['closing', 'closed']));
    expect(gateway.logs.filter(({ level }) => level >= 50)).toEqual([]);
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const)(
    'as %s ends it at once where there is nothing to finish',
    async (signal) => {
      const { gateway } = await start();
      expect((await modern(gateway.url('/old'), 'tools/list')).status).toBe(200);
      gateway.kill(signal);
      const { code, ms } = await gateway.ended;
      expect(code).toBe(0);
      expect(ms).toBeLessThan(4_000);
    },
  );

  test('is answered by an end at once when it comes twice', async () => {
    const { gateway, old } = await start({ overrides: { shutdown: { grace: '30s' } } });
    const answer = modern(gateway.url('/old'), 'tools/call', call(30_000)).catch((error: Error) => error);
    await until(() => old.received('tools/call').length > 0, 'the call to be in flight');
    gateway.kill('SIGTERM');
    await until(() => gateway.logs.some(({ msg }) => msg === 'closing'), 'the gateway to close');
    gateway.kill('SIGTERM');
    const { ms } = await gateway.ended;
    expect(ms).toBeLessThan(10_000);
    expect(await answer).toBeInstanceOf(Error);
  });

  test('tells clients whose calls take too long, and ends all the same', async () => {
    const cancelled: string[] = [];
    const { gateway, old, young } = await start({
      overrides: SHORT_GRACE,
      on: {
        'tools/call': () => undefined,
        DELETE: () => undefined,
        'notifications/cancelled': ({ params, res }: Loose) => {
          cancelled.push(params.reason);
          res.writeHead(202).end();
          return undefined;
        },
      },
    });
    const session = await legacy(gateway.url('/old'));
    const answers = [
      modern(gateway.url('/old'), 'tools/call', call(0)),
      modern(gateway.url('/young'), 'tools/call', call(0)),
      session.request('tools/call', call(0)),
    ];
    await until(
      () => old.received('tools/call').length + young.received('tools/call').length === 3,
      'the calls to be in flight',
    );
    gateway.kill('SIGTERM');
    for (const answer of await Promise.all(answers)) {
      expect(answer.json.error.message).toMatch(/shutting down/);
    }
    const { code, ms } = await gateway.ended;
    expect(code).toBe(0);
    expect(ms).toBeLessThan(9_900);
    // A backend that takes its time over the end of a session is told to stop working before.
    expect(cancelled).toHaveLength(2);
  });

  test('is not held up by clients that never read', async () => {
    const { gateway, old } = await start({
      overrides: SHORT_GRACE,
      on: {
        'tools/call': async ({ stream, res, params }: Loose) => {
          const events = stream();
          const note = {
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: params._meta.progressToken, progress: 1, message: 'x'.repeat(50_000) },
          };
          while (!res.destroyed && res.writableLength < 4_000_000) {
            events.event(note);
            await sleep(1);
          }
          return undefined;
        },
      },
    });
    const session = await legacy(gateway.url('/old'));
    const { headers, body } = modernRequest('tools/call', { ...call(0), _meta: { progressToken: 'p' } });
    const unread = [
      unreadable(gateway.url('/old'), 'POST', headers as Record<string, string>, body as string),
      unreadable(gateway.url('/young'), 'POST', headers as Record<string, string>, body as string),
      unreadable(gateway.url('/old'), 'GET', session.headers as Record<string, string>),
      // One that does not even finish its request, and one that says nothing at all.
      unreadable(gateway.url('/old'), 'POST', { 'content-length': '1000' }, '{"jsonrpc":'),
      unreadable(gateway.url('/old')),
    ];
    await until(() => old.received('tools/call').length > 0, 'the call to be in flight');
    await sleep(1_000);
    gateway.kill('SIGTERM');
    const { code, ms } = await gateway.ended;
    expect(code).toBe(0);
    expect(ms).toBeLessThan(9_900);
    for (const socket of unread) socket.destroy();
  });

  test('ends although the backends are gone, or hang', async () => {
    const { gateway, old, young } = await start();
    const session = await legacy(gateway.url('/old'));
    const stream = await session.listen();
    const subscription = await listening(gateway, '/young', 'listen:9');
    await old.stop();
    await young.stop();
    gateway.kill('SIGTERM');
    await stream.done;
    await subscription.done;
    const { code, ms } = await gateway.ended;
    expect(code).toBe(0);
    expect(ms).toBeLessThan(9_000);
  });
});

function refused(url: string): Promise<boolean> {
  return send(url, { headers: { connection: 'close' } }).then(
    ({ status }) => status === 503,
    () => true,
  );
}

/** A connection on which a call is under way, and a second request comes while the gateway ends. */
function pipelined(url: string, headers: Record<string, string>, body: string) {
  const { hostname, port, pathname, host } = new URL(url);
  const lines = Object.entries({
    host,
    'content-type': 'application/json',
    accept: 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }).filter(([, value]) => value !== undefined);
  const bytes = `POST ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('utf8');
  });
  socket.on('error', () => {});
  socket.write(bytes);
  return {
    askAgain: () => void socket.write(bytes),
    text: new Promise<string>((resolve) => socket.on('close', () => resolve(text))),
  };
}

/** A connection that sends a request, or a part of one, and reads nothing of what comes. */
function unreadable(url: string, method?: string, headers: Record<string, string> = {}, body = ''): Socket {
  const { hostname, port, pathname, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.pause();
  if (method === undefined) return socket;
  const lines = Object.entries({
    host,
    accept: 'application/json, text/event-stream',
    ...(body === ''
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }).filter(([, value]) => value !== undefined);
  socket.write(
    `${method} ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
  return socket;
}

test('a stream that is open in one way or another is known to end, not to break', async () => {
  const { gateway } = await start();
  const session = await legacy(gateway.url('/old'));
  const stream = await open(gateway.url('/old'), {
    headers: { ...session.headers, accept: 'text/event-stream' },
  });
  gateway.kill('SIGTERM');
  const whole = await stream.done;
  expect(whole.status).toBe(200);
  await gateway.ended;
});
