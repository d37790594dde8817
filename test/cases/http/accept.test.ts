import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import {
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { CLIENT_INFO, LEGACY, legacy, modern, type RawResponse, send } from '../../support/raw.js';

/** `undefined` leaves the header out. */
const JSON_ONLY = [
  'application/json',
  'Application/JSON',
  'application/*',
  'application/*;q=0.5',
  'application/json;q=0.9, text/html',
  'application/json, text/event-stream;q=0',
  'application/json;charset=utf-8',
  // Names neither of the two types: refusing would help nobody.
  'text/html',
  'application/jsonl',
  '',
];
const EVENTS_ONLY = [
  'text/event-stream',
  'TEXT/EVENT-STREAM',
  'text/*',
  'text/event-stream;q=0.3',
  'text/event-stream, application/json;q=0',
  'text/event-stream, application/json; q=0.000',
];
const BOTH = [
  undefined,
  '*/*',
  '*/*;q=0.1',
  'text/event-stream, application/json',
  'application/json, text/event-stream',
  'application/json,text/event-stream',
  ' application/json ; q=0.5 ,\ttext/event-stream',
  'text/html, */*;q=0.8',
];
const ALL = [...JSON_ONLY, ...EVENTS_ONLY, ...BOTH];

/** A tool call that reports progress before its result. */
function reporting({ stream, frame, params }: Step): undefined {
  const { progressToken } = params._meta;
  const events = stream();
  const progress = { progressToken, progress: 1 };
  events.event({ jsonrpc: '2.0', method: 'notifications/progress', params: progress });
  events.event(frame({ result: { resultType: 'complete', content: [{ type: 'text', text: 'done' }] } }));
  events.end();
  return undefined;
}

describe.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
      on: { 'tools/call': reporting },
    });
    gateway = await startGateway({ '/mcp': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  const params = { name: 'echo', arguments: {}, _meta: { progressToken: 'p' } };
  const clients: Record<string, (accept: string | undefined) => Promise<RawResponse>> = {
    modern: (accept) => modern(gateway.url(), 'tools/call', params, { headers: { accept } }),
    legacy: async (accept) =>
      (await legacy(gateway.url())).request('tools/call', params, { headers: { accept } }),
  };

  describe.each(Object.keys(clients))('%s client', (client) => {
    const call = clients[client] as (typeof clients)[string];

    test.each(JSON_ONLY)(
      'that accepts "%s" gets one JSON body, without the notifications',
      async (accept) => {
        const answer = await call(accept);
        expect(answer.status).toBe(200);
        expect(answer.headers['content-type']).toBe('application/json');
        expect(answer.json.result.content[0].text).toBe('done');
      },
    );

    test.each(EVENTS_ONLY)('that accepts "%s" gets an event stream', async (accept) => {
      const answer = await call(accept);
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe('text/event-stream');
      expect(answer.messages).toHaveLength(1);
      expect(answer.json.result.content[0].text).toBe('done');
    });

    test.each(BOTH)(
      'that accepts "%s" gets a stream, since there is more than the result',
      async (accept) => {
        const answer = await call(accept);
        expect(answer.headers['content-type']).toBe('text/event-stream');
        expect(answer.messages).toHaveLength(1);
        expect(answer.json.result.content[0].text).toBe('done');
      },
    );
  });

  test.each(ALL)('a handshake with Accept "%s" gives a session', async (accept) => {
    const session = await legacy(gateway.url(), { headers: { accept } });
    expect(session.initialize.status).toBe(200);
    expect(session.initialize.json.result.protocolVersion).toBe(LEGACY);
    expect(session.id).toMatch(/^[\x21-\x7e]+$/);
    expect(session.initialized?.status).toBe(202);
    expect((await session.request('ping')).json.result).toEqual({});
  });

  test.each(ALL)('discovery, lists and refusals are served to Accept "%s"', async (accept) => {
    const options = { headers: { accept } };
    const type = EVENTS_ONLY.includes(accept ?? '') ? 'text/event-stream' : 'application/json';
    for (const method of ['server/discover', 'tools/list']) {
      const answer = await modern(gateway.url(), method, {}, options);
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe(type);
      expect(answer.json.result.resultType).toBe('complete');
    }
    // An error with a status of its own is the one thing that cannot be a stream.
    const refused = await modern(gateway.url(), 'tools/list', {}, { ...options, version: '1900-01-01' });
    expect(refused.status).toBe(400);
    expect(refused.headers['content-type']).toBe('application/json');
    expect(refused.json.error.code).toBe(-32022);
  });

  test('the backend is always offered both types', () => {
    const posts = backend.requests.filter(({ method, text }) => method === 'POST' && text !== '');
    expect(posts.length).toBeGreaterThan(50);
    expect(new Set(posts.map(({ headers }) => headers.accept))).toEqual(
      new Set(['application/json, text/event-stream']),
    );
  });
});

describe('the session stream', () => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await startLegacyBackend();
    gateway = await startGateway({ '/mcp': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  test.each([...EVENTS_ONLY, ...BOTH])('opens for a GET that accepts "%s"', async (accept) => {
    const session = await legacy(gateway.url());
    const stream = await session.listen({ accept });
    expect(stream.status).toBe(200);
    expect(stream.headers['content-type']).toBe('text/event-stream');
    stream.abort();
  });

  test.each(['application/json', 'text/event-stream;q=0', 'text/html'])(
    'is refused with 406 to a GET that accepts "%s"',
    async (accept) => {
      const session = await legacy(gateway.url());
      const answer = await (await session.listen({ accept })).done;
      expect(answer.status).toBe(406);
      expect(answer.json.error.message).toContain('text/event-stream');
    },
  );

  test('several Accept headers count as one', async () => {
    const answer = await send(gateway.url(), {
      headers: [
        ['Accept', 'application/json'],
        ['Accept', 'text/event-stream;q=0'],
      ],
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT_INFO },
      },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
  });
});
