import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../support/cells.js';
import { sleep, until } from '../support/net.js';
import { legacy, type RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { resume } from './rig.js';

useVirtualTime();

const CHANGED = 'notifications/tools/list_changed';
const ASKABLE = { roots: {} };

describe('the stream of a session', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LL', {
      script: { capabilities: { tools: { listChanged: true } } },
      config: { sealKeys: ['a key for this test only'] },
    });
    // The first session of a backend finds out whether there is a stream; the others open theirs when they are asked to.
    await rig.session();
  });
  afterAll(() => rig.close());

  /** A session with its stream open, and the backend's end of that. */
  async function listening(version = '2025-11-25') {
    const session = await legacy(rig.gateway.url(), { version, capabilities: ASKABLE });
    const before = rig.backend.streams.length;
    const stream = await session.listen();
    const getStream = await until(() => rig.backend.streams[before], 'the stream of the backend');
    return {
      session,
      stream,
      tell: (n: number) => getStream.stream.event(message(n)),
      getStream: getStream.stream,
    };
  }
  const message = (n: number) => ({ jsonrpc: '2.0', method: CHANGED, params: { n } });
  const heard = (stream: RawStream) => stream.events.flatMap(({ json }) => json.params?.n ?? []);
  const lost = async (stream: RawStream) => {
    stream.abort();
    await until(() => stream.ended, 'the end of the connection');
    await sleep(30);
  };
  const last = (stream: RawStream) => (stream.events.at(-1)?.id ?? stream.primings.at(-1)) as string;

  test('is primed, and goes on where it broke off', async () => {
    const { session, stream, tell } = await listening();
    await until(() => stream.primings.length === 1, 'the priming event');
    tell(1);
    await stream.next();
    await lost(stream);
    tell(2);
    tell(3);
    await sleep(50);
    const again = await resume(session, last(stream));
    await again.next();
    await again.next();
    tell(4);
    await again.next();
    expect(heard(again)).toEqual([2, 3, 4]);
    again.abort();
  });

  test('that had nothing to tell yet goes on as well', async () => {
    const { session, stream, tell } = await listening();
    await until(() => stream.primings.length === 1, 'the priming event');
    await lost(stream);
    tell(1);
    await sleep(30);
    const again = await resume(session, last(stream));
    await again.next();
    expect(heard(again)).toEqual([1]);
    again.abort();
  });

  test('may be opened anew without an id, and tells what nobody has heard', async () => {
    const { session, stream, tell } = await listening('2025-06-18');
    tell(1);
    await stream.next();
    await lost(stream);
    tell(2);
    await sleep(30);
    const again = await session.listen();
    await again.next();
    tell(3);
    await again.next();
    expect(heard(again)).toEqual([2, 3]);
    again.abort();
  });

  test('takes the place of one that only seems to be read', async () => {
    const { session, stream, tell } = await listening();
    tell(1);
    await stream.next();
    const again = await resume(session, last(stream));
    await until(() => stream.ended, 'the end of the old connection');
    tell(2);
    await again.next();
    expect([heard(stream), heard(again)]).toEqual([[1], [2]]);
    again.abort();
  });

  test('carries a question that was asked while nobody read', async () => {
    const { session, stream, getStream } = await listening();
    await until(() => stream.primings.length === 1, 'the priming event');
    await lost(stream);
    getStream.event({ jsonrpc: '2.0', id: 41, method: 'roots/list' });
    await sleep(30);
    const again = await resume(session, last(stream));
    expect((await again.next()).json).toMatchObject({ id: 41, method: 'roots/list' });
    await session.post({ jsonrpc: '2.0', id: 41, result: { roots: [] } });
    await until(
      () => rig.backend.requests.find(({ json }) => json?.id === 41 && json.result?.roots),
      'the answer at the backend',
    );
    again.abort();
  });

  test('is begun anew for an id that another process gave', async () => {
    const { session, stream } = await listening();
    await until(() => stream.primings.length === 1, 'the priming event');
    const id = last(stream);
    await rig.gateway.restart();
    const before = rig.backend.streams.length;
    const again = await resume(session, id);
    expect(again.status).toBe(200);
    const getStream = await until(() => rig.backend.streams[before], 'the stream of the backend');
    getStream.stream.event(message(1));
    await again.find(({ json }) => json.params?.n === 1);
    expect(heard(again)).toEqual([1]);
    expect(again.primings[0]).not.toBe(id);
    again.abort();
  });
});
