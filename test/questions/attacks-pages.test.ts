import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, sleep } from '../support/net.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  type AskingBackend,
  bearer,
  ModernCaller,
  readQuestions,
  startAskingBackend,
  text,
  trafficDuring,
} from './scripted.js';

useVirtualTime();

const KEY = 'a key that seals request states';
const URL_REQUIRED = {
  code: -32042,
  message: 'Connect your account first',
  data: {
    elicitations: [{ mode: 'url', elicitationId: 'e1', url: 'https://a.example/1', message: 'Connect' }],
  },
};
const ADA = bearer('ada');

let backend: AskingBackend;
let gateway: TestGateway;
let connected = false;

beforeAll(async () => {
  backend = await startAskingBackend({}, async ({ stream, id }) => {
    if (connected) return text('connected');
    stream.event({ jsonrpc: '2.0', id, error: URL_REQUIRED });
    stream.end();
    return undefined;
  });
  const route = { backend: { url: backend.url, era: 'legacy' } };
  gateway = await startGateway({ '/mcp': route, '/other': route }, { sealKeys: [KEY] });
});

beforeEach(() => {
  connected = false;
  backend.calls.length = 0;
});

afterAll(async () => {
  await gateway.close();
  await backend.close();
});

const caller = (args: Loose = { key: 1 }, options = ADA, path = '/mcp'): ModernCaller =>
  new ModernCaller(gateway.url(path), args, options);
const accepted = (key: string): Loose => ({ [key]: { action: 'accept' } });

/** A server of the legacy era refuses the call until a page was visited; its client tries again when it was. */
describe('a call that is to be tried again after a visit to a page', () => {
  test('the retry is the call once more, and may be told the same again', async () => {
    const first = await caller().asked();
    expect(first.requests[first.key]).toEqual({
      method: 'elicitation/create',
      params: { mode: 'url', url: 'https://a.example/1', message: 'Connect' },
    });
    const second = readQuestions(await caller().retry(first.state, accepted(first.key)));
    connected = true;
    const answer = await caller().retry(second.state, accepted(second.key));
    expect(answer.json.result.content[0].text).toBe('connected');
    expect(backend.calls.map(({ params }) => params)).toEqual(
      Array(3).fill({ name: 'ask', arguments: { key: 1 } }),
    );
  });

  test.each<[string, (state: string) => Promise<Loose>]>([
    [
      'a flipped byte',
      (state) => caller().retry(`${state.slice(0, 9)}${state[9] === 'A' ? 'B' : 'A'}${state.slice(10)}`),
    ],
    ['another principal', (state) => caller({ key: 1 }, bearer('alan')).retry(state)],
    ['other arguments', (state) => caller({ key: 2 }).retry(state)],
    ['another tool', (state) => caller().send({ ...caller().params, name: 'other', requestState: state })],
    ['another route', (state) => caller({ key: 1 }, ADA, '/other').retry(state)],
    [
      'a page that was declined',
      (state) => caller().retry(state, { 'elicitation-1': { action: 'decline' } }),
    ],
    ['a page that was left', (state) => caller().retry(state, { 'elicitation-1': { action: 'cancel' } })],
  ])('with %s: the server hears nothing of it', async (_name, send) => {
    const { state } = await caller().asked();
    const traffic = await trafficDuring(backend, async () => {
      const { status, json } = await send(state);
      expect([status, json.error.code]).toEqual([400, -32602]);
    });
    expect(traffic).toEqual([]);
  });

  test('at a gateway of the same key it can be tried too, also when the key is an old one there', async () => {
    for (const keys of [[KEY], ['a newer key of the gateway', KEY]]) {
      const { state, key } = await caller().asked();
      const other = await startGateway(
        { '/mcp': { backend: { url: backend.url, era: 'legacy' } } },
        { sealKeys: keys },
      );
      try {
        const again = readQuestions(
          await new ModernCaller(other.url(), { key: 1 }, ADA).retry(state, accepted(key)),
        );
        expect(again.state).not.toBe(state);
      } finally {
        await other.close();
      }
    }
  });

  test('it expires', async () => {
    const quick = await startGateway({
      '/mcp': { backend: { url: backend.url, era: 'legacy' }, questions: { timeout: '200ms' } },
    });
    try {
      const late = new ModernCaller(quick.url(), { key: 1 }, ADA);
      const { state, key } = await late.asked();
      await sleep(300);
      const { status, json } = await late.retry(state, accepted(key));
      expect([status, json.error.code, json.error.message]).toEqual([
        400,
        -32602,
        expect.stringContaining('expired'),
      ]);
    } finally {
      await quick.close();
    }
  });
});
