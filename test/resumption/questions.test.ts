import { describe, expect, test } from 'vitest';
import { startCell } from '../support/cells.js';
import { sleep, until } from '../support/net.js';
import { type LegacySession, legacy, type RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { lastIdOf, resume, said } from './rig.js';

useVirtualTime();

const HANDSHAKE = { version: '2025-11-25', capabilities: { elicitation: {} } };
const form = (message: string) => ({ message, requestedSchema: { type: 'object', properties: {} } });

/** A tool that asks once, in the way of the backend's era, and then answers. */
async function startAsking(cell: 'LL' | 'LM') {
  const rig = await startCell(cell, { handshake: HANDSHAKE });
  let answered: (answer: unknown) => void = () => {};
  if (cell === 'LM') {
    rig.on('tools/call', ({ params }) => {
      if (params.inputResponses === undefined) {
        const question = { method: 'elicitation/create', params: { mode: 'form', ...form('Who?') } };
        return {
          result: { resultType: 'input_required', inputRequests: { q: question }, requestState: 's' },
        };
      }
      return rig.result('{"content":[{"type":"text","text":"thanks"}]}');
    });
    return rig;
  }
  rig.on('tools/call', async (step) => {
    const events = step.stream({ 'mcp-session-id': step.session ?? '' });
    events.event({ jsonrpc: '2.0', id: 7, method: 'elicitation/create', params: form('Who?') });
    await new Promise((resolve) => {
      answered = resolve;
    });
    events.event(step.frame(rig.result('{"content":[{"type":"text","text":"thanks"}]}')));
    events.end();
    return undefined;
  });
  void until(() => rig.backend.requests.find(({ json }) => json?.result?.action), 'the answer', 20_000).then(
    (answer) => answered(answer),
    () => {},
  );
  return rig;
}

const asked = async (stream: RawStream) =>
  (await stream.find(({ json }) => json?.method === 'elicitation/create')).json;
const accept = (session: LegacySession, id: unknown) =>
  session.post({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } });

describe.each(['LL', 'LM'] as const)('%s: a question on the stream of a call', (cell) => {
  test('may be answered while the stream is broken, and the result is had by taking it up', async () => {
    const rig = await startAsking(cell);
    try {
      const session = await legacy(rig.gateway.url(), HANDSHAKE);
      const stream = await session.open('tools/call', { name: 'ask' }, { id: 1 });
      const { id } = await asked(stream);
      stream.abort();
      await until(() => stream.ended, 'the end of the connection');
      expect((await accept(session, id)).status).toBe(202);
      const again = await resume(session, lastIdOf(stream));
      expect(said((await again.done).events)).toEqual(['thanks']);
    } finally {
      await rig.close();
    }
  });

  test('is asked again on the connection that takes the stream up before it', async () => {
    const rig = await startAsking(cell);
    try {
      const session = await legacy(rig.gateway.url(), HANDSHAKE);
      const stream = await session.open('tools/call', { name: 'ask' }, { id: 1 });
      const question = await asked(stream);
      stream.abort();
      await sleep(30);
      const again = await resume(session, stream.primings[0] as string);
      expect(await asked(again)).toEqual(question);
      await accept(session, question.id);
      expect(said((await again.done).events).at(-1)).toBe('thanks');
    } finally {
      await rig.close();
    }
  });
});
