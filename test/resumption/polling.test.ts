import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCell } from '../support/cells.js';
import { keeper } from '../support/keeper.js';
import { type Loose, sleep, until } from '../support/net.js';
import { type LegacySession, legacy, modern, type RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  begin,
  lastIdOf,
  type RemoteCall,
  type ResumptionRig,
  resume,
  said,
  startResumption,
} from './rig.js';

useVirtualTime();

const HELD = { timeouts: { stream: '100ms' } };
const capabilities = { elicitation: {} };

/** A client that comes back for the rest at once, as often as its stream is closed. */
async function readOn(
  session: LegacySession,
  first: RawStream,
): Promise<{ stream: RawStream[]; events: Loose[] }> {
  const stream = [first];
  for (let last = first; ; stream.push(last)) {
    await last.done;
    if (last.events.some(({ json }) => json.result !== undefined || json.error !== undefined)) break;
    last = await resume(session, lastIdOf(last));
    expect(last.status).toBe(200);
  }
  return { stream, events: stream.flatMap(({ events }) => events) };
}

/** Waits for the gateway to end a connection. */
const detach = async (stream: RawStream): Promise<RawStream> => {
  await until(() => stream.ended, 'the end of the connection', 5_000);
  expect(stream.primings.length).toBeGreaterThan(0);
  expect(stream.retryMs).toBeGreaterThan(0);
  return stream;
};

describe.each(['LL', 'LM'] as const)('%s: where streams are held for a time,', (cell) => {
  let rig: ResumptionRig;
  beforeAll(async () => {
    rig = await startResumption(cell, {
      route: HELD,
      script: { capabilities: { tools: { listChanged: true } } },
    });
  });
  afterAll(() => rig.close());
  const open = (version = '2025-11-25') => legacy(rig.gateway.url(), { version, capabilities });
  const openCall = async (session: LegacySession): Promise<{ stream: RawStream; remote: RemoteCall }> => {
    let opening: Promise<RawStream> | undefined;
    const remote = await rig.nextCall(() => {
      opening = session.open('tools/call', { name: 'slow', _meta: { progressToken: 't' } }, { id: 'call' });
    });
    return { stream: (await opening) as RawStream, remote };
  };

  test('a call without any event yet is detached, and brings its result later', async () => {
    const session = await open();
    const { stream, remote } = await openCall(session);
    await detach(stream);
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    remote.finish('late');
    const again = await (await resume(session, lastIdOf(stream))).done;
    expect(said(again.events)).toEqual(['late']);
  });

  test('a call may be polled many times, and nothing of it is lost or told twice', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    const reading = readOn(session, stream);
    for (let n = 2; n <= 40; n += 1) {
      remote.progress(n);
      await sleep(40);
    }
    remote.finish('whole');
    const { stream: all, events } = await reading;
    expect(all.length).toBeGreaterThan(3);
    expect(said(events)).toEqual([...Array.from({ length: 40 }, (_, n) => n + 1), 'whole']);
    expect(new Set(events.map(({ id }) => id)).size).toBe(41);
    expect(rig.calls.filter(({ step }) => step === remote.step)).toHaveLength(1);
  });

  test('a call whose client never comes back runs to its end all the same', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    await detach(stream);
    for (let n = 2; n < 5; n += 1) remote.progress(n);
    remote.finish('unheard');
    await until(() => remote.step.res.writableFinished, 'the end of the call');
    const answer = await (await resume(session, lastIdOf(stream))).done;
    expect(said(answer.events)).toEqual([2, 3, 4, 'unheard']);
  });

  test('a call may be cancelled while its client is on the way', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    await detach(stream);
    await session.notify('notifications/cancelled', { requestId: 'call', reason: 'enough' });
    if (cell === 'LM') await until(() => remote.step.res.destroyed, 'the end of the request');
    else await until(() => rig.backend.received('notifications/cancelled').length > 0, 'the cancellation');
    const { events } = await (await resume(session, lastIdOf(stream))).done;
    expect(said(events)).toEqual([
      expect.objectContaining({ message: expect.stringContaining('cancelled') }),
    ]);
  });

  test('a question that comes while the client is on the way is asked when it is back', async () => {
    const session = await open();
    const question = { method: 'elicitation/create', params: { message: '?', requestedSchema: FORM } };
    const asking = await startCell(cell, { route: HELD, handshake: { capabilities } });
    try {
      const own = await asking.session();
      let ask = (): void => {};
      const allowed = new Promise<void>((resolve) => {
        ask = resolve;
      });
      asking.on('tools/call', async (step) => {
        if (step.params.inputResponses !== undefined)
          return asking.result(JSON.stringify({ content: [], answer: step.params.inputResponses.q }));
        await allowed;
        if (cell === 'LM')
          return {
            result: { resultType: 'input_required', inputRequests: { q: question }, requestState: 's' },
          };
        const events = step.stream({ 'mcp-session-id': step.session ?? '' });
        events.event({ jsonrpc: '2.0', id: 'q', ...question });
        const answer = await until(
          () => asking.backend.requests.find(({ json }) => json?.id === 'q' && !json.method),
          'the answer',
        );
        events.event(step.frame({ result: { content: [], answer: answer.json.result } }));
        events.end();
        return undefined;
      });
      const stream = await detach(await own.open('tools/call', { name: 'a' }, { id: 'call' }));
      ask();
      await sleep(50);
      const again = await resume(own, lastIdOf(stream));
      const { json } = await again.next();
      expect(json).toMatchObject({ method: 'elicitation/create', params: { message: '?' } });
      await detach(again);
      // The answer has a request of its own, whatever became of the stream.
      await own.post({ jsonrpc: '2.0', id: json.id, result: { action: 'decline' } });
      const { events } = await readOn(own, await resume(own, lastIdOf(again)));
      expect(events.at(-1).json).toMatchObject({ id: 'call', result: { answer: { action: 'decline' } } });
    } finally {
      await asking.close();
      await session.delete();
    }
  });

  test('clients of older revisions, and those that take no event streams, keep their connections', async () => {
    const older: { stream: RawStream; remote: RemoteCall }[] = [];
    for (const version of ['2025-06-18', '2025-03-26', '2024-11-05'])
      older.push(await begin(rig, await open(version)));
    const session = await open();
    let answer: Promise<Loose> | undefined;
    const remote = await rig.nextCall(() => {
      answer = session.request('tools/call', { name: 'slow', _meta: { progressToken: 't' } }, JSON_ONLY);
    });
    await sleep(700);
    remote.finish('whole');
    expect((await answer)?.json.result.content[0].text).toBe('whole');
    for (const { stream, remote } of older) {
      expect(stream.ended).toBe(false);
      remote.finish('whole');
      expect(said((await stream.done).events)).toEqual([1, 'whole']);
    }
  });

  test('what is posted without waiting for an answer, and what is answered at once, is answered as ever', async () => {
    const session = await open();
    expect((await session.notify('notifications/initialized')).status).toBe(202);
    expect((await session.request('ping')).headers['content-type']).toBe('application/json');
  });

  test('the stream of the session is closed too, replays what was missed, and keeps the session alive', async () => {
    const idle = await startCell(cell, {
      route: { ...HELD, sessions: { idle: '300ms' } },
      script: { capabilities: { tools: { listChanged: true } } },
    });
    try {
      const session = await idle.session();
      const stream = await detach(await session.listen());
      await sleep(1_000);
      expect(idle.backend.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
      const again = await resume(session, lastIdOf(stream));
      expect(again.status).toBe(200);
      // It is the very stream, and not a new one.
      expect(lastIdOf(again).split('-')[0]).toBe(lastIdOf(stream).split('-')[0]);
      await detach(again);
    } finally {
      await idle.close();
    }
  });
});

const FORM = { type: 'object', properties: { a: { type: 'string' } } };
const JSON_ONLY = { headers: { accept: 'application/json' } };

const keep = keeper();

async function start(options: Loose = {}): Promise<ResumptionRig> {
  const rig = await keep(startResumption('LL', { route: HELD, ...options }));
  return rig;
}

test('streams are held for as long as they last where nothing else is set', async () => {
  const rig = await start({ route: {} });
  const { stream, remote } = await begin(rig, await legacy(rig.gateway.url()));
  await sleep(700);
  expect(stream.ended).toBe(false);
  remote.finish('whole');
  expect(said((await stream.done).events)).toEqual([1, 'whole']);
});

test('modern clients and those on HTTP+SSE keep their connections', async () => {
  const rig = await keep(startCell('ML', { route: { ...HELD, legacySse: true } }));
  rig.on('tools/call', async () => {
    await sleep(700);
    return rig.result('{"content":[]}');
  });
  const { json } = await modern(rig.gateway.url(), 'tools/call', { name: 'a', arguments: {} });
  expect(json.result.content).toEqual([]);
  const client = new Client({ name: 'ExampleClient', version: '1.0.0' });
  await keep(client);
  await client.connect(new SSEClientTransport(new URL(`${rig.gateway.url()}/sse`)) as Loose);
  for (let n = 0; n < 2; n += 1) expect(await client.callTool({ name: 'a' })).toEqual({ content: [] });
});

describe('a result that comes while its client is on the way', () => {
  const LARGE = 'x'.repeat(2_000_000);

  test('is kept though it is more than the share of a session', async () => {
    const rig = await start({ config: { limits: { replay: '8MiB' } } });
    const session = await legacy(rig.gateway.url());
    const { stream, remote } = await begin(rig, session);
    await detach(stream);
    remote.finish(LARGE);
    await until(() => remote.step.res.writableFinished, 'the end of the call');
    await sleep(100);
    const answer = await (await resume(session, lastIdOf(stream))).done;
    expect(said(answer.events)).toEqual([LARGE]);
  });
});

describe('a gateway that ends', () => {
  test('waits a little for a detached client, and keeps its stream until it has its result', async () => {
    const rig = await start();
    const session = await legacy(rig.gateway.url());
    const away = await begin(rig, session, 'away');
    await detach(away.stream);
    const done = await begin(rig, session, 'done');
    await detach(done.stream);
    done.remote.finish('done meanwhile');
    const stopping = rig.gateway.stop();
    expect((await session.request('ping')).status).toBe(503);
    await sleep(300);
    const again = await resume(session, lastIdOf(away.stream));
    expect(said((await (await resume(session, lastIdOf(done.stream))).done).events)).toEqual([
      'done meanwhile',
    ]);
    await sleep(600);
    expect(again.ended).toBe(false);
    away.remote.finish('whole');
    expect(said((await again.done).events)).toEqual(['whole']);
    await stopping;
  });

  test('does not wait long for one that does not come', async () => {
    const rig = await start();
    const session = await legacy(rig.gateway.url());
    const { stream, remote } = await begin(rig, session);
    await detach(stream);
    remote.finish('unheard');
    const begun = performance.now();
    await rig.gateway.stop();
    expect(performance.now() - begun).toBeLessThan(15_000);
  });
});
