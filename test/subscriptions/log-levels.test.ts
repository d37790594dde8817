import { afterEach, describe, expect, test } from 'vitest';
import type { BackendStream } from '../support/backend.js';
import { startGateway } from '../support/gateway.js';
import type { Step } from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';
import { modern } from '../support/raw.js';
import { record } from '../support/tap.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { listen, Opened, startTellingLegacy, type TellingBackend } from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const LEVEL = 'io.modelcontextprotocol/logLevel';
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const ASKABLE = { elicitation: { form: {} } };

const message = (level: unknown, data: string) => ({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level, data },
});

/** A legacy backend whose tool says what its arguments tell it to, on the call's stream or on its session's. */
async function startLogging(more: Loose = {}) {
  const levels = new Map<string | undefined, string>();
  const feedOf = (backend: TellingBackend, session: string | undefined): BackendStream | undefined =>
    backend.streams.find((one) => one.session === session && !one.stream.closed)?.stream;
  const backend: TellingBackend = await startTellingLegacy({
    ...more,
    on: {
      'logging/setLevel': ({ session, params }: Step) => {
        levels.set(session, params.level);
        return { result: {} };
      },
      'tools/call': async (step: Step) => {
        const { says = [], getStream = false, waitMs = 0 } = step.params.arguments;
        const stream = step.stream();
        const target = getStream ? await until(() => feedOf(backend, step.session), 'the stream') : stream;
        for (const level of says) target.event(message(level, `${step.params.arguments.name} ${level}`));
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        stream.event(step.frame({ result: { content: [] } }));
        stream.end();
        return undefined;
      },
      ...more.on,
    },
  });
  const recording = record();
  opened.add(backend);
  const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
  const front = opened.add(await recording.client(gateway.url()));
  const call = (args: Loose, level?: unknown, capabilities = {}) =>
    modern(
      front.url,
      'tools/call',
      { name: 'say', arguments: { name: 'x', ...args } },
      { capabilities, ...(level === undefined ? {} : { meta: { [LEVEL]: level } }) },
    );
  return { backend, url: front.url, recording, call, levels };
}

const heard = ({ messages }: { messages: readonly Loose[] }) => messages.map(({ params }) => params.level);

describe('what a legacy backend logs during the call of a modern client', () => {
  test.each([
    ['one that it shares', {}],
    ['one that the call has to itself', ASKABLE],
  ])(
    'on a session that is %s, comes from the level on that the request asks for',
    async (_what, capabilities) => {
      const { call, backend, recording } = await startLogging();
      expect(heard(await call({ says: LEVELS }, undefined, capabilities))).toEqual([]);
      expect(backend.received('logging/setLevel')).toEqual([]);
      for (const [index, level] of LEVELS.entries()) {
        const answer = await call({ says: LEVELS }, level, capabilities);
        expect(heard(answer)).toEqual(LEVELS.slice(index));
        expect(answer.json.result.content).toEqual([]);
      }
      // The most talkative was asked for first, and does for the others.
      expect(backend.received('logging/setLevel').map(({ json }) => json.params.level)).toEqual(['debug']);
      expect(heard(await call({ says: LEVELS }, undefined, capabilities))).toEqual([]);
      expect(recording.violations).toEqual([]);
    },
  );

  test('makes the backend more talkative where a later call wants to hear more, and not less', async () => {
    const { call, backend, levels } = await startLogging();
    for (const level of ['error', 'warning', 'critical', 'info']) await call({}, level);
    expect(backend.received('logging/setLevel').map(({ json }) => json.params.level)).toEqual([
      'error',
      'warning',
      'info',
    ]);
    expect([...levels.values()]).toEqual(['info']);
  });

  test('comes on the stream of that call alone, among many at once', async () => {
    const { call } = await startLogging();
    const calls = Array.from({ length: 12 }, (_, n) =>
      call(
        { name: `call ${n}`, says: ['info', 'error'], waitMs: 40 },
        n % 3 === 0 ? undefined : n % 3 === 1 ? 'info' : 'error',
      ),
    );
    for (const [n, answer] of (await Promise.all(calls)).entries()) {
      const expected = n % 3 === 0 ? [] : n % 3 === 1 ? ['info', 'error'] : ['error'];
      expect(answer.messages.map(({ params }) => params.data)).toEqual(
        expected.map((level) => `call ${n} ${level}`),
      );
    }
  });

  test('on the stream of its session, comes to the call that has the session to itself', async () => {
    const { call } = await startLogging();
    expect(heard(await call({ says: LEVELS, getStream: true, waitMs: 60 }, 'alert', ASKABLE))).toEqual([
      'alert',
      'emergency',
    ]);
    expect(heard(await call({ says: LEVELS, getStream: true, waitMs: 60 }, undefined, ASKABLE))).toEqual([]);
  });

  test('on the stream of a shared session, comes to the one call that is in flight, and to none of several', async () => {
    const { call, url } = await startLogging();
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    expect(heard(await call({ says: ['error'], getStream: true, waitMs: 60 }, 'info'))).toEqual(['error']);
    const answers = await Promise.all(
      [1, 2].map((n) => call({ name: n, says: ['error'], getStream: true, waitMs: 100 }, 'info')),
    );
    expect(answers.map(heard)).toEqual([[], []]);
    expect(listener.stream.events.map(({ json }) => json?.method)).not.toContain('notifications/message');
  });

  test('is not asked for where the backend does not log, or refuses or never answers to be asked', async () => {
    const silent = await startLogging({ capabilities: { tools: {} } });
    expect(heard(await silent.call({ says: ['error'] }, 'info'))).toEqual(['error']);
    expect(silent.backend.received('logging/setLevel')).toEqual([]);
    const refusing = await startLogging({
      on: { 'logging/setLevel': () => ({ error: { code: -32601, message: 'Method not found' } }) },
    });
    expect((await refusing.call({ says: ['error'] }, 'info')).json.result.content).toEqual([]);
  });

  test('with a level that is none comes to nobody, and a request that asks for such a level is refused', async () => {
    const { call } = await startLogging();
    expect(heard(await call({ says: ['loud', 7, null, 'error'] }, 'debug'))).toEqual(['error']);
    for (const level of ['loud', 7, null, '']) {
      const { status, json } = await call({ says: ['error'] }, level);
      expect([level, status, json.error?.code]).toEqual([level, 400, -32602]);
    }
  });
});
