import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Sealer } from '../../src/exchange/utils/sealer.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { startModernBackend } from '../support/misbehave.js';
import { type Loose, sleep } from '../support/net.js';
import { modern, RawJson } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ASKABLE,
  type Asked,
  type AskingBackend,
  accept,
  bearer,
  ModernCaller,
  readQuestions,
  startAskingBackend,
  trafficDuring,
} from './scripted.js';

useVirtualTime();

const KEY = 'a key that seals request states';
const OTHER_KEY = 'another key, of another gateway';

let backend: AskingBackend;
let gateway: TestGateway;

beforeAll(async () => {
  backend = await startAskingBackend();
  gateway = await startGateway(
    {
      '/mcp': { backend: { url: backend.url, era: 'legacy' } },
      '/other': { backend: { url: backend.url, era: 'legacy' } },
    },
    { sealKeys: [KEY] },
  );
});

afterAll(async () => {
  await gateway.close();
  await backend.close();
});

const ADA = bearer('ada');

async function parked(
  args: Loose = { key: 1 },
  options = ADA,
): Promise<{ caller: ModernCaller; round: Asked }> {
  const caller = new ModernCaller(gateway.url('/mcp'), args, options);
  return { caller, round: await caller.asked() };
}

/** Sends a request that must be refused, and finds out whether the backend heard of it. */
async function refused(send: () => Promise<{ status: number; json: Loose }>): Promise<string> {
  let message = '';
  const traffic = await trafficDuring(backend, async () => {
    const { status, json } = await send();
    expect([status, json?.error?.code]).toEqual([400, -32602]);
    expect(json.id).not.toBeNull();
    message = json.error.message;
  });
  expect(traffic).toEqual([]);
  return message;
}

/** The retry that the call is waiting for still goes through: a bad one before it has spoilt nothing. */
async function goesOn({ caller, round }: { caller: ModernCaller; round: Asked }): Promise<void> {
  const answer = await caller.retry(round.state, { [round.key]: accept('mine') });
  expect(answer.json.result.content[0].text).toBe('mine');
}

const flipped = (state: string, at: number): string => {
  const other = state[at] === 'A' ? 'B' : 'A';
  return state.slice(0, at) + other + state.slice(at + 1);
};

/** Other spellings of the same bytes, which lenient decoders of base64 take. */
const SPELLINGS: Record<string, (state: string) => string> = {
  'with padding': (state) => `${state}==`,
  'in standard base64': (state) =>
    Buffer.from(state, 'base64url').toString('base64').replace(/=+$/, '') === state
      ? `${state}=`
      : Buffer.from(state, 'base64url').toString('base64'),
  'with a space': (state) => `${state.slice(0, 20)} ${state.slice(20)}`,
  'with a line break at the end': (state) => `${state}\n`,
  'with a NUL at the end': (state) => `${state}\0`,
  'with white space before': (state) => ` ${state}`,
  'with a point': (state) => `${state.slice(0, 10)}.${state.slice(10)}`,
  'in hexadecimal': (state) => Buffer.from(state, 'base64url').toString('hex'),
  'sealed twice over': (state) => Buffer.from(state).toString('base64url'),
};

const DAMAGED: Record<string, (state: string) => string> = {
  'a flipped byte in the key id': (state) => flipped(state, 0),
  'a flipped byte in the nonce': (state) => flipped(state, 10),
  'a flipped byte in the sealed content': (state) => flipped(state, Math.floor(state.length / 2)),
  'a flipped byte in the tag': (state) => flipped(state, state.length - 6),
  // Of the last character some bits may not count.
  'another last character': (state) => flipped(state, state.length - 1),
  'its last character missing': (state) => state.slice(0, -1),
  'its last quarter missing': (state) => state.slice(0, -Math.floor(state.length / 4)),
  'nothing but the first bytes': (state) => state.slice(0, 8),
  'its first bytes missing': (state) => state.slice(4),
  'one more character': (state) => `${state}A`,
  'a block more': (state) => `${state}AAAAAAAA`,
  'itself twice': (state) => `${state}${state}`,
  'its case changed': (state) => state.toLowerCase(),
  ...SPELLINGS,
};

describe('a state that is not what was handed out is refused, and the backend hears nothing of it', () => {
  test.each(Object.entries(DAMAGED))('%s', async (_name, damage) => {
    const call = await parked();
    const state = damage(call.round.state);
    expect(state).not.toBe(call.round.state);
    await refused(() => call.caller.retry(state, { [call.round.key]: accept('stolen') }));
    await goesOn(call);
  });

  test.each([
    ['an empty string', ''],
    ['one character', 'A'],
    ['a word', 'state'],
    ['a mebibyte of junk', 'A'.repeat(1024 * 1024)],
    ['a mebibyte of what is no base64', '\u{1F600}'.repeat(256 * 1024)],
    ['a number', 7],
    ['null', null],
    ['true', true],
    ['an object', { state: 'A' }],
    ['an array', ['A']],
  ])('%s in place of a state', async (_name, state) => {
    const call = await parked();
    await refused(() => call.caller.retry(state, { [call.round.key]: accept('stolen') }));
    await refused(() => new ModernCaller(gateway.url('/mcp'), { key: 'never asked' }, ADA).retry(state));
    await goesOn(call);
  });

  test('one bit after the other of the whole state', async () => {
    const call = await parked();
    const bytes = Buffer.from(call.round.state, 'base64url');
    const traffic = await trafficDuring(backend, async () => {
      for (let at = 0; at < bytes.length; at += 3) {
        const copy = Buffer.from(bytes);
        copy[at] = (copy[at] as number) ^ (1 << (at % 8));
        const { status, json } = await call.caller.retry(copy.toString('base64url'));
        expect([at, status, json.error.code]).toEqual([at, 400, -32602]);
      }
    });
    expect(traffic).toEqual([]);
    await goesOn(call);
  });
});

describe('a state serves the one call, principal and round that it was made for', () => {
  test.each([
    ['another principal', bearer('alan')],
    ['nobody', {}],
    ['the same name in another scheme', { headers: { authorization: 'Basic ada' } }],
    ['the same credential in other letters', bearer('Ada')],
  ])('%s', async (_name, who) => {
    const call = await parked();
    const stranger = new ModernCaller(gateway.url('/mcp'), { key: 1 }, who);
    const message = await refused(() => stranger.retry(call.round.state, { [call.round.key]: accept('x') }));
    expect(message).toContain('another principal');
    await goesOn(call);
  });

  test.each<[string, Loose, Loose]>([
    ['another value', { key: 1, n: 1 }, { key: 1, n: 2 }],
    ['a missing one', { key: 1, n: 1 }, { key: 1 }],
    ['one more', { key: 1 }, { key: 1, n: null }],
    ['a string for a number', { key: 1 }, { key: '1' }],
    ['another order of a list', { key: 1, list: [1, 2] }, { key: 1, list: [2, 1] }],
    ['deep inside', { key: 1, a: [{ b: { c: 1 } }] }, { key: 1, a: [{ b: { c: 2 } }] }],
    ['another key of the same value', { key: 1, a: 'x' }, { key: 1, b: 'x' }],
    ['a value that moved to the next key', { key: 1, a: 'x', b: '' }, { key: 1, a: '', b: 'x' }],
  ])('changed arguments: %s', async (_name, first, second) => {
    const call = await parked(first);
    const changed = new ModernCaller(gateway.url('/mcp'), second, ADA);
    const message = await refused(() => changed.retry(call.round.state, { [call.round.key]: accept('x') }));
    expect(message).toContain('another request');
    await goesOn(call);
  });

  test('arguments that differ in digits beyond the precision of JavaScript', async () => {
    const call = await parked({ key: 1, id: new RawJson('12345678901234567890') });
    const changed = new ModernCaller(
      gateway.url('/mcp'),
      { key: 1, id: new RawJson('12345678901234567891') },
      ADA,
    );
    await refused(() => changed.retry(call.round.state));
    await goesOn(call);
  });

  test('another tool', async () => {
    const call = await parked();
    const params = { ...call.caller.params, name: 'other', requestState: call.round.state };
    await refused(() => call.caller.send(params));
    await goesOn(call);
  });

  test.each([
    ['prompts/get', { name: 'ask', arguments: { key: 1 } }],
    ['resources/read', { uri: 'file:///ask' }],
    ['tools/list', {}],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'ask' }, argument: { name: 'a', value: 'b' } },
    ],
    ['server/discover', {}],
  ])('another method: %s', async (method, params) => {
    const call = await parked();
    const options = { capabilities: ASKABLE, ...ADA };
    await refused(() =>
      modern(gateway.url('/mcp'), method, { ...params, requestState: call.round.state }, options),
    );
    await goesOn(call);
  });

  test('another route of the same gateway to the same backend', async () => {
    const call = await parked();
    const elsewhere = new ModernCaller(gateway.url('/other'), { key: 1 }, ADA);
    await refused(() => elsewhere.retry(call.round.state, { [call.round.key]: accept('x') }));
    await goesOn(call);
  });

  test('used twice', async () => {
    const call = await parked();
    await goesOn(call);
    const begun = backend.calls.length;
    const message = await refused(() =>
      call.caller.retry(call.round.state, { [call.round.key]: accept('x') }),
    );
    expect(message).toContain('used already');
    // The same retry again is that of a client that did not receive its response, and nobody else's.
    await goesOn(call);
    const other = new ModernCaller(gateway.url('/mcp'), { key: 1 });
    await refused(() => other.retry(call.round.state, { [call.round.key]: accept('mine') }));
    expect(backend.calls).toHaveLength(begun);
  });

  test('a state of an earlier round', async () => {
    backend.tool(async ({ elicit }) => ({
      content: [{ type: 'text', text: `${await elicit('one?')} ${await elicit('two?')}` }],
    }));
    const call = await parked();
    const second = readQuestions(
      await call.caller.retry(call.round.state, { [call.round.key]: accept('1') }),
    );
    expect(second.state).not.toBe(call.round.state);
    await refused(() => call.caller.retry(call.round.state, { [second.key]: accept('x') }));
    await refused(() => call.caller.retry(call.round.state, { [call.round.key]: accept('x') }));
    const answer = await call.caller.retry(second.state, { [second.key]: accept('2') });
    expect(answer.json.result.content[0].text).toBe('1 2');
    await refused(() => call.caller.retry(second.state, { [second.key]: accept('x') }));
    backend.tool(async ({ elicit }) => ({ content: [{ type: 'text', text: await elicit('one?') }] }));
  });

  test('what the gateway seals for other ends is no state', async () => {
    const call = await parked();
    const sealer = new Sealer([KEY]);
    const content = JSON.stringify(['instance', '', 0, 'anonymous', 'digest', Date.now() + 60_000]);
    for (const purpose of ['session', '', 'request state', 'request state /', 'request state /other']) {
      await refused(() => call.caller.retry(sealer.seal(purpose, content)));
    }
    await goesOn(call);
  });
});

describe('the same request, written in another way, is the same request', () => {
  test.each<[string, Loose, Loose]>([
    [
      'in another order of keys',
      { key: 1, b: { x: 1, y: [{ p: 1, q: 2 }] } },
      { b: { y: [{ q: 2, p: 1 }], x: 1 }, key: 1 },
    ],
    [
      'with other white space',
      new RawJson('{"key":1,"list":[1,2]}'),
      new RawJson('{ "key" : 1,\n"list":\t[ 1, 2 ] }'),
    ],
    ['with keys written in escapes', new RawJson('{"key":1}'), new RawJson('{"\\u006bey":1}')],
  ])('%s', async (_name, first, second) => {
    const { round } = await parked(first);
    const again = new ModernCaller(gateway.url('/mcp'), second, ADA);
    const answer = await again.retry(round.state, { [round.key]: accept('mine') });
    expect(answer.json.result.content[0].text).toBe('mine');
  });

  test('with other members of _meta, another client name and other capabilities', async () => {
    const { caller, round } = await parked();
    const answer = await caller.retry(
      round.state,
      { [round.key]: accept('mine') },
      {
        meta: { 'example.com/try': 2, 'io.modelcontextprotocol/clientInfo': { name: 'B', version: '2' } },
      },
    );
    expect(answer.json.result.content[0].text).toBe('mine');
  });
});

test('no state, or null responses beside none, is a call of its own', async () => {
  const call = await parked();
  const begun = backend.calls.length;
  const again = readQuestions(
    await call.caller.send({ ...call.caller.params, inputResponses: { [call.round.key]: accept('x') } }),
  );
  expect(backend.calls).toHaveLength(begun + 1);
  expect(backend.calls.at(-1)?.params).not.toHaveProperty('inputResponses');
  await goesOn({ caller: call.caller, round: again });
  await goesOn(call);
});

describe('states of other gateways', () => {
  async function second(sealKeys: string[]): Promise<TestGateway> {
    return startGateway({ '/mcp': { backend: { url: backend.url, era: 'legacy' } } }, { sealKeys });
  }

  test.each([
    ['with another key', [OTHER_KEY]],
    ['with the same key, which does not hold the call', [KEY]],
    ['that knows the key as an old one', [OTHER_KEY, KEY]],
    ['with a random key', []],
  ])('another gateway %s', async (_name, keys) => {
    const other = await second(keys);
    try {
      const call = await parked();
      const there = new ModernCaller(other.url(), { key: 1 }, ADA);
      await refused(() => there.retry(call.round.state, { [call.round.key]: accept('x') }));
      await goesOn(call);
    } finally {
      await other.close();
    }
  });

  test('a restarted gateway with the same key says that it does not hold the call', async () => {
    const first = await second([KEY]);
    try {
      const caller = new ModernCaller(first.url(), { key: 1 }, ADA);
      const round = await caller.asked();
      await first.restart();
      await sleep(50);
      const message = await refused(() => caller.retry(round.state, { [round.key]: accept('x') }));
      expect(message).toMatch(/not held by this gateway/);
      // The client starts over.
      const again = await caller.asked();
      const answer = await caller.retry(again.state, { [again.key]: accept('mine') });
      expect(answer.json.result.content[0].text).toBe('mine');
    } finally {
      await first.close();
    }
  });
});

describe('a modern backend judges its own states', () => {
  test.each<[string, string]>([
    ['a string', '"its own \\u00e9\\/ state"'],
    ['an empty string', '""'],
    ['a number', '12345678901234567890'],
    ['null', 'null'],
    ['an object', '{ "a" : 1.0 }'],
    ['a kilobyte of junk', `"${'A'.repeat(1024)}"`],
    ['sixteen kilobytes of junk', `"${'/'.repeat(16 * 1024)}"`],
  ])('%s reaches it as it is', async (_name, state) => {
    const modernBackend = await startModernBackend();
    const other = await startGateway({ '/mcp': modernBackend.url }, { sealKeys: [KEY] });
    try {
      const responses = new RawJson('{"k":{ "action":"accept","n":1.0}}');
      const call = new ModernCaller(other.url(), { key: 1 }, ADA);
      const answer = await call.retry(new RawJson(state), responses);
      expect(answer.json.result.resultType).toBe('complete');
      const sent = modernBackend.received('tools/call').map(({ text: body }) => body);
      expect(sent).toHaveLength(1);
      expect(sent[0]).toContain(`"requestState":${state}`);
      expect(sent[0]).toContain(`"inputResponses":${responses.text}`);
    } finally {
      await other.close();
      await modernBackend.close();
    }
  });
});
