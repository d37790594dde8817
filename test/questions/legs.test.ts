import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { startLegacyBackend } from '../support/misbehave.js';
import type { Loose } from '../support/net.js';
import { asking, hasPython, type Peer, PYTHON_NEEDED, startPython, startV2 } from '../support/peers/index.js';
import { MODERN, modern } from '../support/raw.js';
import { ALL_CAPABILITIES, person, type Rig, rawRounds, responsesTo, startRig, textOf } from './rig.js';

const { form } = asking;
const ASK = { rounds: [{ a: form('A?') }] };
const ANSWERED = { a: { action: 'accept', content: { value: 'to: A?' } } };

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

/** The eras in which the backend has been asked to call a tool, in order. */
const erasOfCalls = ({ recording }: Rig): string[] =>
  recording.exchanges
    .filter(({ side, body }) => side === 'backend' && body?.method === 'tools/call')
    .map(({ headers }) => (headers['mcp-protocol-version'] === MODERN ? 'modern' : 'legacy'));

async function answersTo(kind: 'v1' | 'v2 auto', start: () => Promise<Peer>, leg: string): Promise<Loose> {
  rig = await startRig(start, { backend: { leg } });
  const client = await rig.connect(kind, { handlers: person().handlers });
  const result = await client.callTool('ask', ASK);
  expect(rig.recording.violations).toEqual([]);
  return result;
}

describe('a server of both eras', () => {
  test.each([
    ['a legacy client', 'v1', 'legacy'],
    ['a modern client', 'v2 auto', 'modern'],
  ] as const)('asks %s in its own era, where it has sessions for the legacy one', async (_who, kind, era) => {
    const result = await answersTo(kind, () => startV2({ legacy: 'sessions' }), 'auto');
    expect(JSON.parse(textOf(result))).toEqual(ANSWERED);
    expect(new Set(erasOfCalls(rig as Rig))).toEqual(new Set([era]));
  });

  test('asks a legacy client on its modern side where its legacy one keeps no sessions', async () => {
    const result = await answersTo('v1', () => startV2(), 'auto');
    expect(JSON.parse(textOf(result))).toEqual(ANSWERED);
    expect(erasOfCalls(rig as Rig)).toEqual(['modern', 'modern']);
  });

  test.each([
    ['legacy', 'v2 auto', 'legacy'],
    ['modern', 'v1', 'modern'],
  ] as const)('is used on the %s side alone where the configuration says so', async (leg, kind, era) => {
    const result = await answersTo(kind, () => startV2({ legacy: 'sessions' }), leg);
    expect(JSON.parse(textOf(result))).toEqual(ANSWERED);
    expect(new Set(erasOfCalls(rig as Rig))).toEqual(new Set([era]));
  });

  test('is not asked to ask on a side that cannot, unless the configuration says so', async () => {
    const result = await answersTo('v1', () => startV2(), 'legacy');
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result)).toMatch(/Cannot request input/);
  });
});

/** A server of both eras whose handlers ask in the legacy way only, and fail at it in the modern era. */
function startOneSided(sessions: boolean) {
  const refusal = {
    code: -32600,
    message: "Cannot send 'elicitation/create': this context has no back-channel for server requests.",
  };
  return startLegacyBackend({
    sessions,
    intercept: (exchange) => {
      const { json, headers } = exchange;
      if (headers['mcp-protocol-version'] !== MODERN) return false;
      const answer = (body: Loose, status = 200) =>
        exchange.sendJson({ jsonrpc: '2.0', id: json.id, ...body }, status);
      const about = {
        supportedVersions: [MODERN],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: 'private',
      };
      const list = { tools: [], ttlMs: 0, cacheScope: 'private' };
      const { name } = json.params;
      if (json.method === 'server/discover') answer({ result: { resultType: 'complete', ...about } });
      else if (json.method === 'tools/list') answer({ result: { resultType: 'complete', ...list } });
      else if (name === 'mrtr' && json.params.requestState === undefined) {
        const inputRequests = { a: form('A?') };
        answer({ result: { resultType: 'input_required', inputRequests, requestState: 'own state' } });
      } else if (name === 'ask') answer({ error: refusal }, 400);
      else
        answer({ result: { resultType: 'complete', content: [{ type: 'text', text: `modern ${name}` }] } });
      return true;
    },
    on: {
      'tools/call': (step) => {
        const stream = step.stream();
        if (step.params.name === 'ask') {
          stream.event({ jsonrpc: '2.0', id: 1, ...form('A?') });
          return undefined;
        }
        const text = `legacy ${step.params.name}`;
        stream.event(step.frame({ result: { content: [{ type: 'text', text }] } }));
        stream.end();
        return undefined;
      },
    },
  });
}

describe('a server whose handlers can ask on its legacy side alone', () => {
  async function start(sessions: boolean, leg = 'auto') {
    const backend = await startOneSided(sessions);
    const gateway = await startGateway({ '/mcp': { backend: { url: backend.url, leg } } });
    const call = async (name: string, capabilities: Loose = ALL_CAPABILITIES, more: Loose = {}) => {
      const params = { name, arguments: {}, ...more };
      const { json } = await modern(gateway.url(), 'tools/call', params, { capabilities });
      return json.error?.code ?? json.result.inputRequests ?? textOf(json.result);
    };
    const close = async () => {
      await gateway.close();
      await backend.close();
    };
    return { backend, gateway, call, close };
  }

  test('is called there, for clients that it may ask, from the first such failure on', async () => {
    const { backend, call, gateway, close } = await start(true);
    try {
      expect(await call('plain')).toBe('modern plain');
      // What has begun is not begun again: this call is lost.
      expect(await call('ask')).toBe(-32600);
      expect(backend.received('initialize')).toHaveLength(0);
      expect(await call('plain')).toBe('legacy plain');
      expect(await call('ask')).toEqual({ 'elicitation-1': form('A?') });
      expect(await call('plain', {})).toBe('modern plain');
      expect(
        (await modern(gateway.url(), 'tools/list', {}, { capabilities: ALL_CAPABILITIES })).json.result.tools,
      ).toEqual([]);
      expect(backend.received('tools/call').filter(({ json }) => json.params.name === 'ask')).toHaveLength(2);
    } finally {
      await close();
    }
  });

  test('is asked in the modern era about a state that it gave in the modern era', async () => {
    const { call, close } = await start(true);
    try {
      expect(await call('mrtr')).toEqual({ a: form('A?') });
      expect(await call('ask')).toBe(-32600);
      const retry = {
        requestState: 'own state',
        inputResponses: responsesTo({ inputRequests: { a: form('A?') } }),
      };
      expect(await call('mrtr', ALL_CAPABILITIES, retry)).toBe('modern mrtr');
      expect(await call('mrtr')).toBe('legacy mrtr');
    } finally {
      await close();
    }
  });

  test.each([
    ['its legacy side keeps no sessions', false, 'auto'],
    ['the configuration wants the modern one', true, 'modern'],
  ])('is called on its modern side all the same where %s', async (_why, sessions, leg) => {
    const { call, close } = await start(sessions, leg);
    try {
      expect(await call('ask')).toBe(-32600);
      expect(await call('ask')).toBe(-32600);
      expect(await call('plain')).toBe('modern plain');
    } finally {
      await close();
    }
  });

  test('is called on its legacy side from the start where the configuration says so', async () => {
    const { call, close } = await start(true, 'legacy');
    try {
      expect(await call('ask')).toEqual({ 'elicitation-1': form('A?') });
    } finally {
      await close();
    }
  });
});

describe.skipIf(!hasPython)(`a server of the Python SDK 2.x${PYTHON_NEEDED}`, () => {
  let server: Peer;
  beforeAll(async () => {
    server = await startPython('mcp 2.3.0');
  });
  afterAll(() => server?.close());
  const python = async () => ({ ...server, close: async () => {} });

  test.each(['v1', 'v2 auto'] as const)(
    'asks client %s what its tools declare, in the era of the client',
    async (kind) => {
      rig = await startRig(python, { questions: { roots: 'ask' } });
      const someone = person({
        form: ({ requestedSchema }) => {
          const [key = ''] = Object.keys(requestedSchema.properties);
          return { action: 'accept', content: { [key]: key === 'agreed' ? true : `a ${key}` } };
        },
      });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      expect(textOf(await client.callTool('resolved_name'))).toBe('Hello a name.');
      const all = textOf(await client.callTool('resolved_all', { prompt: 'p' }));
      expect(all).toBe('a name a colour True 1 heard file:///work');
      expect(new Set(erasOfCalls(rig))).toEqual(new Set([client.era]));
      expect(rig.recording.violations).toEqual([]);
    },
  );

  test('asks a legacy client what its tools declare, on its modern side too', async () => {
    rig = await startRig(python, { backend: { leg: 'modern' } });
    const someone = person({ form: () => ({ action: 'decline' }) });
    const client = await rig.connect('v1', { handlers: someone.handlers });
    expect(textOf(await client.callTool('resolved_name'))).toBe('Hello (decline).');
    expect(new Set(erasOfCalls(rig))).toEqual(new Set(['modern']));
    expect(rig.recording.violations).toEqual([]);
  });

  test('is called on its legacy side once a tool could not ask on the modern one', async () => {
    rig = await startRig(python);
    const [first] = await rawRounds(rig.url, { name: 'ask_name', arguments: {} }, [{}]);
    expect(first?.json.error).toMatchObject({
      code: -32600,
      message: expect.stringMatching(/no back-channel/),
    });
    const later = await rawRounds(rig.url, { name: 'ask_name', arguments: {} }, [{}, {}]);
    expect(textOf(later.at(-1)?.json.result)).toBe('Hello to: What is your name?.');
    const plain = await rig.connect('v2 pin', { capabilities: {} });
    expect(textOf(await plain.callTool('runs', { tool: 'ask_name' }))).toBe('2');
    expect(erasOfCalls(rig)).toEqual(['modern', 'legacy', 'modern']);
    expect(rig.recording.violations).toEqual([]);
  });

  test('sends a modern client to a page and is called again, in the modern era', async () => {
    rig = await startRig(python);
    const client = await rig.connect('v2 pin', { handlers: person().handlers });
    expect(textOf(await client.callTool('connect', { url: 'https://example.com/' }))).toBe('Connected.');
    expect(erasOfCalls(rig)).toEqual(['modern', 'modern']);
    expect(rig.recording.violations).toEqual([]);
  });
});
