import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep, until } from '../support/net.js';
import { legacy, open } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { begin, lastIdOf, type ResumptionRig, resume, said, startResumption } from './rig.js';

useVirtualTime();

describe.each(['LL', 'LM'] as const)('%s: the stream that answers a call', (cell) => {
  let rig: ResumptionRig;
  beforeAll(async () => {
    rig = await startResumption(cell);
  });
  afterAll(() => rig.close());
  const open = () => legacy(rig.gateway.url(), { version: '2025-11-25' });

  test('begins with an event that has an id and no data, and says when to come back', async () => {
    const { stream, remote } = await begin(rig, await open());
    expect(stream.primings).toHaveLength(1);
    expect(stream.retryMs).toBeGreaterThan(0);
    remote.finish('done');
    const { text, events } = await stream.done;
    expect(text).toMatch(/^id: \S+\nretry: \d+\ndata: ?\n\n/);
    const ids = [...stream.primings, ...events.map(({ id }) => id)];
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain(undefined);
  });

  test('goes on where it broke off, with what was said meanwhile, the rest and the result', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    await until(() => stream.ended, 'the end of the connection');
    remote.progress(2);
    remote.progress(3);
    await sleep(50);
    const again = await resume(session, lastIdOf(stream));
    expect([again.status, again.headers['content-type']]).toEqual([200, 'text/event-stream']);
    await again.next();
    await again.next();
    remote.progress(4);
    await again.next();
    remote.finish('all of it');
    const { events } = await again.done;
    expect(said(events)).toEqual([2, 3, 4, 'all of it']);
    expect(events.map(({ json }) => json.params?.progressToken ?? json.id)).toEqual([
      ...Array(3).fill('token of call'),
      'call',
    ]);
    expect(rig.calls.filter(({ step }) => step === remote.step)).toHaveLength(1);
  });

  test('has its result fetched by a client that left before it came', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    remote.finish('late');
    await sleep(50);
    const answer = await (await resume(session, lastIdOf(stream))).done;
    expect(said(answer.events)).toEqual(['late']);
  });

  test('may be read from any event on, as often as its connection breaks', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    const [primed] = stream.primings;
    let last = stream;
    for (let n = 2; n < 6; n++) {
      last.abort();
      last = await resume(session, lastIdOf(last));
      remote.progress(n);
      await last.next();
    }
    remote.finish('done');
    expect(said((await last.done).events)).toEqual([5, 'done']);
    const whole = await (await resume(session, primed as string)).done;
    expect(said(whole.events)).toEqual([1, 2, 3, 4, 5, 'done']);
  });

  test('is primed again when it is resumed, so that the client knows what to ask for next', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    const second = await resume(session, lastIdOf(stream));
    await until(() => second.primings.length > 0, 'the priming event');
    second.abort();
    const third = await resume(session, second.primings[0] as string);
    remote.finish('done');
    expect(said((await third.done).events)).toEqual(['done']);
  });

  test('moves to the new connection when the old one only seems to be there', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    const again = await resume(session, lastIdOf(stream));
    await until(() => stream.ended, 'the end of the old connection');
    remote.finish('done');
    expect(said((await again.done).events)).toEqual(['done']);
    expect(said(stream.events)).toEqual([1]);
  });

  test('tells nothing of other streams of the session', async () => {
    const session = await open();
    const one = await begin(rig, session, 'one');
    const two = await begin(rig, session, 'two');
    const get = await session.listen();
    one.stream.abort();
    two.stream.abort();
    two.remote.progress(20);
    one.remote.progress(10);
    two.remote.finish('of two');
    one.remote.finish('of one');
    await sleep(50);
    const [first, second] = await Promise.all(
      [one, two].map(async ({ stream }) => (await resume(session, lastIdOf(stream))).done),
    );
    expect(said(first?.events ?? [])).toEqual([10, 'of one']);
    expect(said(second?.events ?? [])).toEqual([20, 'of two']);
    expect(get.events).toEqual([]);
    get.abort();
  });

  test('is not to be had by other sessions, nor by other principals', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    remote.finish('secret');
    await sleep(50);
    const id = lastIdOf(stream);
    const stranger = await open();
    const refused = await (await resume(stranger, id)).done;
    expect([refused.status, refused.json.error.code]).toEqual([400, -32000]);
    expect(refused.text).not.toContain('secret');
    const thief = await (await resume(session, id, { authorization: 'Bearer other' })).done;
    expect(thief.status).toBe(404);
    expect(said((await (await resume(session, id)).done).events)).toEqual(['secret']);
  });

  test('that was read to its end is not begun again', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    remote.finish('done');
    await stream.done;
    const again = await (await resume(session, lastIdOf(stream))).done;
    // To the readers of event streams this means: do not come back.
    expect([again.status, again.text]).toEqual([204, '']);
  });

  test.each(['nonsense', '0', '0/3', 'r0123456789-1', `${'x'.repeat(5_000)}`])(
    'of an unknown event id %# is refused in clear words',
    async (id) => {
      const answer = await (await resume(await open(), id)).done;
      expect(answer.status).toBe(400);
      expect(answer.json).toMatchObject({ id: null, error: { code: -32000, message: /Last-Event-ID/ } });
    },
  );

  test('has no events after those that there were', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    const id = lastIdOf(stream).replace(/-\w+$/, '-zz');
    expect((await (await resume(session, id)).done).status).toBe(400);
    remote.finish('done');
  });

  test('ends for good with its session', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    remote.finish('done');
    await sleep(50);
    await session.delete();
    expect((await (await resume(session, lastIdOf(stream))).done).status).toBe(404);
  });

  test('goes on while a cancellation comes by another connection', async () => {
    const session = await open();
    const { stream, remote } = await begin(rig, session);
    stream.abort();
    await session.notify('notifications/cancelled', { requestId: 'call' });
    const events = (await (await resume(session, lastIdOf(stream))).done).events;
    expect(events.filter(({ json }) => json.result)).toEqual([]);
    remote.finish('nobody wants it');
  });

  test('is JSON where there is nothing to say before the result', async () => {
    const session = await open();
    rig.on('prompts/get', () => rig.result('{"messages":[]}'));
    const { headers } = await session.request('prompts/get', { name: 'p' });
    expect(headers['content-type']).toBe('application/json');
  });

  test('is an event stream in any case to a client that names streams first', async () => {
    const session = await open();
    const accept = 'text/event-stream, application/json';
    const { headers, text, events } = await session.request('tools/list', {}, { headers: { accept } });
    expect(headers['content-type']).toBe('text/event-stream');
    expect(text).toMatch(/^id: /);
    expect(events).toHaveLength(1);
  });
});

describe.each(['LL', 'LM'] as const)('%s: a client of an older revision', (cell) => {
  test.each(['2025-03-26', '2025-06-18'])('%s may take streams up, but is not primed', async (version) => {
    const rig = await startResumption(cell, { version });
    try {
      const session = await rig.session();
      const { stream, remote } = await begin(rig, session);
      expect(stream.primings).toEqual([]);
      stream.abort();
      remote.progress(2);
      const again = await resume(session, lastIdOf(stream));
      remote.finish('done');
      const { events, text } = await again.done;
      expect(said(events)).toEqual([2, 'done']);
      expect(text).not.toMatch(/data: ?\n/);
    } finally {
      await rig.close();
    }
  });

  test('2024-11-05 has neither ids nor resumable streams', async () => {
    const rig = await startResumption(cell, { version: '2024-11-05' });
    try {
      const { stream, remote } = await begin(rig, await rig.session());
      remote.finish('done');
      const { events, text } = await stream.done;
      expect(said(events)).toEqual([1, 'done']);
      expect(text).not.toMatch(/^(id|retry):/m);
    } finally {
      await rig.close();
    }
  });

  test('without room for it, no client is given ids', async () => {
    const rig = await startResumption(cell, { config: { limits: { replay: 0 } } });
    try {
      const session = await rig.session();
      const { stream, remote } = await begin(rig, session);
      remote.finish('done');
      expect((await stream.done).text).not.toMatch(/^(id|retry):/m);
      // As ever, a GET is the session's stream then.
      const get = await resume(session, 'anything');
      expect(get.status).toBe(200);
      get.abort();
    } finally {
      await rig.close();
    }
  });
});

describe.each(['LL', 'LM'] as const)('%s: the stream that answers a batch', (cell) => {
  test('is resumed with the answers that are still to come', async () => {
    const rig = await startResumption(cell, { version: '2025-03-26' });
    try {
      const session = await rig.session();
      const one = { name: 'slow', arguments: {}, _meta: { progressToken: 'p' } };
      const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: one }));
      const opening = open(rig.gateway.url(), { headers: session.headers, body: batch });
      await until(() => rig.calls.length === 2, 'both calls');
      rig.calls[0]?.progress(1);
      const stream = await opening;
      await stream.next();
      stream.abort();
      rig.calls[0]?.finish('one');
      rig.calls[1]?.progress(2);
      const again = await resume(session, lastIdOf(stream));
      await again.next();
      rig.calls[1]?.finish('two');
      const { events } = await again.done;
      expect(new Set(said(events))).toEqual(new Set([2, 'one', 'two']));
      expect(events.flatMap(({ json }) => json.id ?? []).sort()).toEqual([1, 2]);
    } finally {
      await rig.close();
    }
  });
});
