import { afterEach, describe, expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, type ModernOptions, modern, RawJson } from '../support/raw.js';
import { cacheOf, Opened, startTelling, startTellingLegacy, startTellingModern } from './rig.js';

const opened = new Opened();
afterEach(() => opened.closeAll());

const TOOLS = [{ name: 'a', inputSchema: { type: 'object' } }];
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/** A modern backend whose results have these hints; `n` counts them. */
async function startHinting(hints: string, more: Loose = {}) {
  let n = 0;
  const result = (members: string) => {
    n += 1;
    return { result: new RawJson(`{"resultType":"complete",${hints}"n":${n},${members}}`) };
  };
  return opened.routeTo(
    await startTellingModern({
      ...more,
      on: {
        'tools/list': () => result(`"tools":${JSON.stringify(TOOLS)}`),
        'resources/list': () => result('"resources":[]'),
        'resources/read': () => result('"contents":[]'),
        ...more.on,
      },
    }),
    more.route,
    more.config,
  );
}

describe('a list of a modern backend', () => {
  test('is served again, to clients of both eras, with what is left of its time', async () => {
    const { backend, url, gateway } = await startHinting('"ttlMs":60000,"cacheScope":"private",');
    const first = await modern(url, 'tools/list', {}, { id: 1 });
    expect(first.json.result).toMatchObject({ n: 1, ttlMs: 60_000 });
    await sleep(300);
    const second = await modern(url, 'tools/list', {}, { id: 'two' });
    expect(second.json).toMatchObject({ id: 'two', result: { n: 1, tools: TOOLS, cacheScope: 'private' } });
    expect(second.json.result.ttlMs).toBeLessThanOrEqual(59_700);
    expect(second.json.result.ttlMs).toBeGreaterThan(50_000);
    expect(Object.keys(second.json.result).sort()).toEqual(Object.keys(first.json.result).sort());
    const session = await legacy(url);
    for (let n = 0; n < 3; n += 1) {
      const { json } = await session.request('tools/list', {}, { id: n });
      expect(json).toEqual({ jsonrpc: '2.0', id: n, result: { n: 2, tools: TOOLS } });
    }
    expect(backend.received('tools/list')).toHaveLength(2);
    expect(cacheOf(gateway, 'tools/list')).toEqual([undefined, 'hit', undefined, 'hit', 'hit']);
  });

  test('is asked for again when its time is over', async () => {
    const { backend, url } = await startHinting('"ttlMs":300,"cacheScope":"private",');
    await modern(url, 'tools/list');
    await sleep(350);
    expect((await modern(url, 'tools/list')).json.result.n).toBe(2);
    expect(backend.received('tools/list')).toHaveLength(2);
  });

  test.each([
    ['"ttlMs":0,"cacheScope":"public",'],
    ['"cacheScope":"public",'],
    ['"ttlMs":-5,"cacheScope":"public",'],
    ['"ttlMs":1.5,"cacheScope":"public",'],
    ['"ttlMs":"60000","cacheScope":"public",'],
    ['"ttlMs":null,"cacheScope":"public",'],
  ])('with the hints %s is not kept', async (hints) => {
    const { backend, url } = await startHinting(hints);
    for (const n of [1, 2]) expect((await modern(url, 'tools/list')).json.result.n).toBe(n);
    expect(backend.received('tools/list')).toHaveLength(2);
  });

  test('is kept for a day at most, and told of as the backend told', async () => {
    const { url } = await startHinting('"ttlMs":9007199254740991,"cacheScope":"private",');
    await modern(url, 'tools/list');
    const { json } = await modern(url, 'tools/list');
    expect(json.result.n).toBe(1);
    expect(json.result.ttlMs).toBeGreaterThan(86_400_000);
  });

  test('is kept byte for byte', async () => {
    const { url } = await startHinting(
      '"big":12345678901234567890,"x":1.0,"ttlMs":60000,"cacheScope":"private",',
    );
    await modern(url, 'tools/list');
    const { answer } = await modern(url, 'tools/list', {}, { id: new RawJson('12345678901234567891') });
    expect(answer).toMatch(/^\{"jsonrpc":"2.0","id":12345678901234567891,"result":\{/);
    expect(answer).toContain('"big":12345678901234567890,"x":1.0,');
  });

  test('is another one for other params, and the same whatever _meta says', async () => {
    const { backend, url } = await startHinting('"ttlMs":60000,"cacheScope":"private",');
    const ask = async (params: Loose, options?: ModernOptions) =>
      (await modern(url, 'tools/list', params, options)).json.result.n;
    expect(await ask({})).toBe(1);
    expect(await ask({ cursor: 'two' })).toBe(2);
    expect(await ask({ cursor: 'three' })).toBe(3);
    expect(await ask({ cursor: 'two' })).toBe(2);
    expect(await ask({}, { meta: { 'example.com/trace': 'x', traceparent: '00-1-2-03' } })).toBe(1);
    expect(
      await ask({}, { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } }),
    ).toBe(1);
    expect((await modern(url, 'resources/list')).json.result.n).toBe(4);
    expect(backend.received('tools/list')).toHaveLength(3);
  });

  test('is asked for by clients that want progress, or what is logged meanwhile', async () => {
    const { backend, url } = await startHinting('"ttlMs":60000,"cacheScope":"private",');
    await modern(url, 'tools/list');
    await modern(url, 'tools/list', {}, { meta: { progressToken: 0 } });
    await modern(url, 'tools/list', {}, { meta: { [LOG_LEVEL]: 'info' } });
    expect(backend.received('tools/list')).toHaveLength(3);
  });

  test('that is an error is not kept', async () => {
    let n = 0;
    const fail = () => {
      n += 1;
      return { error: { code: -32603, message: `Failed ${n}` } };
    };
    const { url } = await startHinting('', { on: { 'tools/list': fail } });
    for (const message of ['Failed 1', 'Failed 2'])
      expect((await modern(url, 'tools/list')).json.error.message).toBe(message);
  });
});

describe('a resource', () => {
  const read = (uri: string, more: Loose = {}) => ({ uri, ...more });

  test('is kept by its uri', async () => {
    const { backend, url } = await startHinting('"ttlMs":60000,"cacheScope":"private",');
    for (const uri of ['file:///a', 'file:///b', 'file:///a', 'file:///b'])
      await modern(url, 'resources/read', read(uri));
    expect(backend.received('resources/read')).toHaveLength(2);
  });

  test.each([
    ['inputResponses', { inputResponses: { q: { action: 'accept', content: {} } } }],
    ['requestState', { requestState: 'state of the backend' }],
    ['both', { inputResponses: {}, requestState: 'state of the backend' }],
  ])('is not kept of a retry with %s, nor is what is kept given to one', async (_what, more) => {
    const { backend, url } = await startHinting('"ttlMs":60000,"cacheScope":"private",');
    const capabilities = { elicitation: { form: {} } };
    const ask = async (params: Loose) =>
      (await modern(url, 'resources/read', params, { capabilities })).json.result.n;
    expect(await ask(read('file:///a', more))).toBe(1);
    expect(await ask(read('file:///a', more))).toBe(2);
    expect(await ask(read('file:///a'))).toBe(3);
    expect(await ask(read('file:///a', more))).toBe(4);
    expect(await ask(read('file:///a'))).toBe(3);
    // However the key is written.
    const escaped = new RawJson(
      JSON.stringify({
        uri: 'file:///a',
        ...more,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'ExampleClient', version: '1.0.0' },
          'io.modelcontextprotocol/clientCapabilities': capabilities,
        },
      })
        .replace('"requestState"', '"requestSt\\u0061te"')
        .replace('"inputResponses"', '"inputRespons\\u0065s"'),
    );
    const headers = { 'mcp-name': 'file:///a' };
    for (const n of [5, 6])
      expect((await modern(url, 'resources/read', escaped, { headers })).json.result.n).toBe(n);
    expect(backend.received('resources/read')).toHaveLength(6);
  });

  test('is not kept that was read with the help of a person', async () => {
    for (const era of ['legacy', 'modern'] as const) {
      const backend = await startTelling[era]({
        on: {
          'resources/read': (step: Loose) => {
            if (era === 'legacy') {
              const stream = step.stream();
              const params = { message: '?', requestedSchema: { type: 'object', properties: {} } };
              stream.event({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params });
              backend.on('resources/read', undefined);
              answered = () => {
                stream.event(step.frame({ result: { contents: [] } }));
                stream.end();
              };
              return undefined;
            }
            if (step.params.inputResponses === undefined) {
              const params = {
                mode: 'form',
                message: '?',
                requestedSchema: { type: 'object', properties: {} },
              };
              const inputRequests = { q: { method: 'elicitation/create', params } };
              return { result: { resultType: 'input_required', inputRequests, requestState: 's' } };
            }
            return { result: { resultType: 'complete', contents: [], ttlMs: 60_000, cacheScope: 'public' } };
          },
        },
        intercept: ({ json }: Loose) => {
          if (json?.id === 'q') answered();
          return false;
        },
      });
      let answered = () => {};
      const { url } = await opened.routeTo(backend, { cache: { 'resources/read': '60s' } });
      const handler = () => backend.received('resources/read').length;
      if (era === 'legacy') {
        const capabilities = { elicitation: { form: {} } };
        const params = { uri: 'file:///a' };
        const asked = (await modern(url, 'resources/read', params, { capabilities })).json.result;
        const [key] = Object.keys(asked.inputRequests);
        const inputResponses = { [key as string]: { action: 'accept', content: {} } };
        const retry = { ...params, inputResponses, requestState: asked.requestState };
        expect((await modern(url, 'resources/read', retry, { capabilities })).json.result.contents).toEqual(
          [],
        );
        backend.on('resources/read', () => ({ result: { contents: [{ uri: 'file:///a', text: 'again' }] } }));
        expect(
          (await modern(url, 'resources/read', params, { capabilities })).json.result.contents,
        ).toHaveLength(1);
        expect(handler()).toBe(2);
      } else {
        const session = await legacy(url, { capabilities: { elicitation: {} } });
        for (const times of [1, 2]) {
          const stream = await session.open('resources/read', { uri: 'file:///a' });
          const { json } = await stream.find((event) => event.json?.method === 'elicitation/create');
          await session.post({ jsonrpc: '2.0', id: json.id, result: { action: 'accept', content: {} } });
          expect((await stream.done).json.result.contents).toEqual([]);
          expect(handler()).toBe(2 * times);
        }
      }
    }
  });
});

describe('a list of a legacy backend', () => {
  async function startCounting(script: Loose = {}, route: Loose = {}) {
    let n = 0;
    const result = (member: string) => () => {
      n += 1;
      return { result: { n, [member]: [] } };
    };
    const on = {
      'tools/list': result('tools'),
      'prompts/list': result('prompts'),
      'resources/list': result('resources'),
      'resources/templates/list': result('resourceTemplates'),
      'resources/read': result('contents'),
    };
    return opened.routeTo(await startTellingLegacy({ ...script, on: { ...on, ...script.on } }), route);
  }
  const ALL: [string, Loose][] = [
    ['tools/list', {}],
    ['prompts/list', {}],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'file:///a' }],
  ];
  /** Of what comes before the stream of the session is there, changes may go unheard. */
  const untilHeard = (url: string) => modern(url, 'server/discover');
  /** Asks twice; the hint, and whether it was asked for twice. */
  async function twice(url: string, [method, params]: [string, Loose]) {
    const first = (await modern(url, method, params)).json.result;
    const second = (await modern(url, method, params)).json.result;
    expect(second.cacheScope).toBe('private');
    return { kept: first.n === second.n, ttlMs: second.ttlMs };
  }

  test('is kept while the backend is heard, and is for nobody else to keep', async () => {
    const { url } = await startCounting();
    await untilHeard(url);
    for (const one of ALL) {
      const told = ['tools/list', 'prompts/list', 'resources/list'].includes(one[0]);
      expect([one[0], await twice(url, one)]).toEqual([one[0], { kept: told, ttlMs: 0 }]);
    }
  });

  test.each([
    ['promises nothing', { capabilities: { tools: {}, prompts: {}, resources: {} } }],
    ['has no stream', { on: { GET: ({ res }: Loose) => void res.writeHead(405).end() } }],
    ['knows no sessions', { sessions: false }],
  ])('is not kept where the backend %s', async (_what, script) => {
    const { url } = await startCounting(script as Loose);
    for (const one of ALL) expect((await twice(url, one)).kept).toBe(false);
  });

  test('is kept as long as the route says, and clients are told so', async () => {
    const cache = Object.fromEntries(ALL.map(([method]) => [method, '1m']));
    const { url } = await startCounting({ capabilities: { tools: {} } }, { cache });
    for (const one of ALL) {
      const { kept, ttlMs } = await twice(url, one);
      expect([one[0], kept]).toEqual([one[0], true]);
      expect(ttlMs).toBeGreaterThan(50_000);
      expect(ttlMs).toBeLessThanOrEqual(60_000);
    }
  });

  test('is not kept where the route says off', async () => {
    const { url } = await startCounting({}, { cache: { 'tools/list': 'off', 'prompts/list': '300ms' } });
    expect(await twice(url, ['tools/list', {}])).toEqual({ kept: false, ttlMs: 0 });
    expect((await twice(url, ['prompts/list', {}])).kept).toBe(true);
    await sleep(350);
    expect((await modern(url, 'prompts/list')).json.result.n).toBe(4);
  });

  test('is not kept where every call has a session of its own, unless the route says so', async () => {
    const capabilities = { elicitation: { form: {} } };
    const { url, backend } = await startCounting(
      {},
      { sessions: { isolation: 'call' }, cache: { 'prompts/list': '1m' } },
    );
    for (const n of [1, 2]) {
      expect((await modern(url, 'tools/list', {}, { capabilities })).json.result.n).toBe(n);
      await until(() => backend.sessions.size === 0, 'the end of the session');
    }
    for (let times = 0; times < 2; times += 1)
      expect((await modern(url, 'prompts/list', {}, { capabilities })).json.result.n).toBe(3);
  });

  test('is not kept any longer when the stream that tells of changes breaks', async () => {
    const { url, backend } = await startCounting();
    await untilHeard(url);
    expect(await twice(url, ['tools/list', {}])).toMatchObject({ kept: true });
    backend.streams[0]?.stream.destroy();
    await until(async () => (await modern(url, 'tools/list')).json.result.n === 2, 'another answer');
    await until(() => backend.listeners().length === 1, 'the stream again');
    await sleep(50);
    const { n } = (await modern(url, 'tools/list')).json.result;
    expect((await modern(url, 'tools/list')).json.result.n).toBe(n);
  });

  test('is asked for anew by each legacy client, whose session may be told otherwise', async () => {
    const { url, backend } = await startCounting({}, { cache: { 'tools/list': '1m' } });
    for (let n = 0; n < 2; n += 1) {
      const session = await legacy(url);
      for (let times = 0; times < 2; times += 1) await session.request('tools/list');
    }
    expect(backend.received('tools/list')).toHaveLength(4);
  });
});

test('what is kept is bounded by its bytes; what was unused for longest is dropped', async () => {
  const text = 'x'.repeat(20_000);
  const { backend, url } = await startHinting('"ttlMs":60000,"cacheScope":"private",', {
    on: {
      'resources/read': ({ params }: Loose) => ({
        result: {
          resultType: 'complete',
          ttlMs: 60_000,
          cacheScope: 'private',
          contents: [{ uri: params.uri, text }],
        },
      }),
    },
    // Room for two: a result weighs three times its bytes.
    config: { limits: { cache: '150KiB' } },
  });
  const read = (n: number) => modern(url, 'resources/read', { uri: `file:///${n}` });
  const asked = () => backend.received('resources/read').map(({ json }) => Number(json.params.uri.slice(8)));
  for (const n of [1, 2, 1, 3, 1, 3, 2])
    expect((await read(n)).json.result.contents[0].text).toHaveLength(20_000);
  expect(asked()).toEqual([1, 2, 3, 2]);
});
