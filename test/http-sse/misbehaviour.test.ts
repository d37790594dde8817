import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { legacy, modern, modernRequest } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  type Posted,
  SAID,
  type ScriptedSession,
  type SseBackend,
  type SseScript,
  startSseBackend,
  TOOLS,
} from './scripted.js';

useVirtualTime();

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

async function start(
  script: SseScript = {},
  config: Record<string, Loose> = {},
): Promise<{ backend: SseBackend; gateway: TestGateway }> {
  const results = { 'tools/list': TOOLS, 'tools/call': () => SAID(), ...script.results };
  const backend = await startSseBackend({ ...script, results });
  opened.push(backend);
  const route = { backend: { url: backend.url, transport: 'http-sse' } };
  const gateway = await startGateway({ '/mcp': route }, config);
  opened.push(gateway);
  return { backend, gateway };
}

const call = (gateway: TestGateway, args: Loose = {}, options: Loose = {}) =>
  modern(gateway.url(), 'tools/call', { name: 'echo', arguments: args }, options);
const list = (gateway: TestGateway) => modern(gateway.url(), 'tools/list');
const isCall = ({ message }: Posted) => message.method === 'tools/call';

describe('a call gets its response', () => {
  const ways: Record<string, (posted: Posted) => void> = {
    'after a POST that gets 200 and plain text': (posted) => {
      posted.accept(200, 'OK', { 'content-type': 'text/plain' });
      posted.reply(SAID());
    },
    'after a POST that gets 204': (posted) => {
      posted.accept(204, '');
      posted.reply(SAID());
    },
    'after a POST that gets other JSON': (posted) => {
      posted.accept(200, '{"status":"accepted"}', { 'content-type': 'application/json' });
      posted.reply(SAID());
    },
    'after a POST that gets a page': (posted) => {
      posted.accept(200, '<p>thanks</p>', { 'content-type': 'text/html' });
      posted.reply(SAID());
    },
    'before its POST does': (posted) => {
      posted.reply(SAID());
      setTimeout(() => posted.accept(), 50);
    },
    'although its POST never does': (posted) => posted.reply(SAID()),
    'in the body of the POST instead of the stream': (posted) => {
      const body = { jsonrpc: '2.0', id: posted.message.id, result: SAID() };
      posted.accept(200, JSON.stringify(body), { 'content-type': 'application/json' });
    },
    'in an event stream of the POST': (posted) => {
      const body = { jsonrpc: '2.0', id: posted.message.id, result: SAID() };
      posted.accept(200, `data: ${JSON.stringify(body)}\n\n`, { 'content-type': 'text/event-stream' });
    },
    'under its id as a string': (posted) => {
      posted.accept();
      posted.session.send({ jsonrpc: '2.0', id: String(posted.message.id), result: SAID() });
    },
    'in an array': (posted) => {
      posted.accept();
      posted.session.send([
        { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } },
        { jsonrpc: '2.0', id: posted.message.id, result: SAID() },
      ]);
    },
    'between events that are not messages': (posted) => {
      posted.accept();
      posted.session.write('data: {not json\n\ndata: 42\n\nevent: odd\ndata: x\n\n: hm\n\ndata:\n\n');
      posted.session.write(`data: {"jsonrpc":"2.0","id":999,"result":{}}\n\n`);
      posted.reply(SAID());
    },
    'in several lines of data, of which the last lacks its blank line, at the end of the stream': (
      posted,
    ) => {
      posted.accept();
      const { id } = posted.message;
      const result = JSON.stringify(SAID());
      posted.session.write(`data: {"jsonrpc":"2.0","id":${id},\r\ndata: "result":${result}}`);
      posted.session.end();
    },
    'with bytes that are not valid UTF-8': (posted) => {
      posted.accept();
      const text = JSON.stringify({ jsonrpc: '2.0', id: posted.message.id, result: SAID('done\u0001') });
      const [before = '', after = ''] = text.split('\\u0001');
      posted.session.write(
        Buffer.concat([
          Buffer.from(`data: ${before}`),
          Buffer.from([0xc0, 0xaf]),
          Buffer.from(after),
          Buffer.from('\n\n'),
        ]),
      );
    },
  };
  test.each(Object.keys(ways))('%s', async (name) => {
    const way = ways[name] as (typeof ways)[string];
    const { gateway } = await start({
      post: (posted) => {
        if (!isCall(posted)) return false;
        way(posted);
        return true;
      },
    });
    const answer = await call(gateway);
    expect(answer.status).toBe(200);
    expect(answer.json.result.content[0].text).toContain('done');
  });

  test('whatever the order of the responses', async () => {
    const waiting: Posted[] = [];
    const { backend, gateway } = await start({
      post: (posted) => {
        if (!isCall(posted)) return false;
        posted.accept();
        waiting.push(posted);
        if (waiting.length < 5) return true;
        for (const one of waiting.reverse()) one.reply(SAID(one.message.params.arguments.n));
        return true;
      },
    });
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((n) => call(gateway, { n })));
    expect(answers.map(({ json }) => json.result.content[0].text)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(backend.sessions).toHaveLength(1);
  });
});

test('progress reaches its own call, however many are in flight', async () => {
  const waiting: Posted[] = [];
  const { gateway } = await start({
    post: (posted) => {
      if (!isCall(posted)) return false;
      posted.accept();
      waiting.push(posted);
      if (waiting.length < 3) return true;
      for (const { session, message } of waiting) {
        const { progressToken } = message.params._meta;
        for (const progress of [1, 2]) {
          const params = { progressToken, progress, message: message.params.arguments.n };
          session.send({ jsonrpc: '2.0', method: 'notifications/progress', params });
        }
      }
      for (const one of waiting.reverse()) one.reply(SAID());
      return true;
    },
  });
  await list(gateway);
  const names = ['a', 'b', 'c'];
  const answers = await Promise.all(
    names.map((n) =>
      modern(gateway.url(), 'tools/call', {
        name: 'echo',
        arguments: { n },
        _meta: { progressToken: `p${n}` },
      }),
    ),
  );
  for (const [i, n] of names.entries()) {
    expect(answers[i]?.messages.map(({ params }) => params)).toEqual(
      [1, 2].map((progress) => expect.objectContaining({ progressToken: `p${n}`, progress, message: n })),
    );
  }
});

describe('a call fails at once', () => {
  const ways: Record<string, [(posted: Posted) => void, status: number, said: RegExp]> = {
    'when its POST is refused in plain text': [
      (posted) => posted.accept(403, 'not you', { 'content-type': 'text/plain' }),
      403,
      /not you|Forbidden|403/,
    ],
    'when its POST is refused with 400': [
      (posted) => posted.accept(400, 'Could not parse message', { 'content-type': 'text/plain' }),
      502,
      /HTTP 400: Could not parse/,
    ],
    'when its POST gets 500': [(posted) => posted.accept(500, 'boom'), 502, /HTTP 500: boom/],
    'when the stream ends': [
      (posted) => {
        posted.accept();
        posted.session.end();
      },
      502,
      /the event stream ended/,
    ],
    'when the stream breaks': [
      (posted) => {
        posted.accept();
        posted.session.res.destroy();
      },
      502,
      /connection lost/,
    ],
    'when its connection breaks': [(posted) => posted.request.socket.destroy(), 502, /connection lost/],
    'with an error without an id': [
      (posted) => {
        posted.accept();
        posted.session.send({ jsonrpc: '2.0', id: null, error: { code: -32603, message: 'no luck' } });
      },
      200,
      /no luck/,
    ],
    'with an error in the body of the POST': [
      (posted) => {
        const error = { jsonrpc: '2.0', id: posted.message.id, error: { code: -31999, message: 'no luck' } };
        posted.accept(500, JSON.stringify(error), { 'content-type': 'application/json' });
      },
      200,
      /no luck/,
    ],
  };
  test.each(Object.keys(ways))('%s, and the next one succeeds', async (name) => {
    const [way, , said] = ways[name] as (typeof ways)[string];
    let failed = false;
    const { backend, gateway } = await start({
      post: (posted) => {
        if (!isCall(posted) || failed) return false;
        failed = true;
        way(posted);
        return true;
      },
    });
    const answer = await call(gateway);
    expect(`${JSON.stringify(answer.json.error)} ${detailOf(gateway, answer)}`).toMatch(said);
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
    expect(backend.received('tools/call')).toHaveLength(2);
    expect(backend.open().length).toBe(1);
  });

  test('when the response is too large, and the next one succeeds', async () => {
    let large = true;
    const { gateway } = await start(
      { results: { 'tools/call': () => SAID(large ? 'x'.repeat(200_000) : 'done') } },
      { limits: { result: '100KiB' } },
    );
    const answer = await call(gateway);
    expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_RESPONSE_TOO_LARGE' });
    large = false;
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
  });
});

describe('a session that is lost is replaced', () => {
  test('when its POSTs get 404, and its stream is closed', async () => {
    let forgotten: string | undefined;
    const { backend, gateway } = await start({
      post: (posted) => {
        if (posted.session.id !== forgotten) return false;
        posted.accept(404, 'Session not found');
        return true;
      },
    });
    expect((await call(gateway)).status).toBe(200);
    forgotten = backend.sessions[0]?.id;
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
    expect(backend.sessions).toHaveLength(2);
    await until(() => backend.open().length === 1, 'the old stream to be closed');
  });

  test('when one of its POSTs gets 404, and earlier requests still get their responses', async () => {
    let slow: Posted | undefined;
    const { backend, gateway } = await start({
      post: (posted) => {
        if (!isCall(posted)) return false;
        const { lost } = posted.message.params.arguments;
        if (lost === undefined) {
          posted.accept();
          slow = posted;
        } else if (slow === undefined || posted.session !== slow.session) return false;
        else posted.accept(404, 'Session not found');
        return true;
      },
    });
    const first = call(gateway);
    await until(() => slow, 'the first call');
    expect((await call(gateway, { lost: true })).json.result).toMatchObject(SAID());
    slow?.reply(SAID('late'));
    expect((await first).json.result).toMatchObject(SAID('late'));
    await until(() => backend.open().length === 1, 'the old stream to be closed');
  });

  test('when its stream ended while it was idle', async () => {
    const { backend, gateway } = await start();
    expect((await call(gateway)).status).toBe(200);
    backend.sessions[0]?.end();
    await until(() => backend.open().length === 0, 'the stream to end');
    const answers = await Promise.all([call(gateway), call(gateway), list(gateway)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('during a list request, which is repeated', async () => {
    const { backend, gateway } = await start({
      post: (posted) => {
        if (posted.message.method !== 'tools/list' || backend.sessions.length > 1) return false;
        posted.accept();
        posted.session.res.destroy();
        return true;
      },
    });
    expect((await list(gateway)).json.result.tools).toHaveLength(1);
    expect(backend.sessions).toHaveLength(2);
  });

  test('when the server was restarted, for clients with and without a session', async () => {
    const { backend, gateway } = await start();
    const session = await legacy(gateway.url());
    expect((await call(gateway)).status).toBe(200);
    expect((await session.request('tools/call', { name: 'echo' })).json.result).toEqual(SAID());
    await backend.restart();
    expect((await call(gateway)).json.result.content[0].text).toBe('done');
    expect((await session.request('tools/call', { name: 'echo' })).json.result).toEqual(SAID());
  });
});

test('calls that come during the handshake wait for it', async () => {
  const { backend, gateway } = await start({
    post: (posted) => {
      if (posted.message.method !== 'initialize') return false;
      posted.accept();
      const result = {
        protocolVersion: '2024-11-05',
        capabilities: {},
        serverInfo: { name: 'x', version: '1' },
      };
      setTimeout(() => posted.reply(result), 300);
      return true;
    },
  });
  const answers = await Promise.all([call(gateway), list(gateway), call(gateway)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(backend.received('initialize')).toHaveLength(1);
  const order = backend.requests.map(({ json }) => json?.method);
  expect(order.slice(0, 3)).toEqual([undefined, 'initialize', 'notifications/initialized']);
});

test('log messages reach a legacy client on the response stream of its call', async () => {
  const { gateway } = await start({
    capabilities: { tools: {}, logging: {} },
    post: (posted) => {
      if (!isCall(posted)) return false;
      posted.accept();
      const params = { level: 'info', data: 'working' };
      posted.session.send({ jsonrpc: '2.0', method: 'notifications/message', params });
      posted.reply(SAID());
      return true;
    },
  });
  for (const capabilities of [{}, { sampling: {} }]) {
    const session = await legacy(gateway.url(), { capabilities });
    const { messages, json } = await session.request('tools/call', { name: 'echo' });
    expect(messages.map(({ params }) => params.data)).toEqual(['working']);
    expect(json.result).toEqual(SAID());
  }
});

test('a legacy client keeps its session across a restart of the gateway', async () => {
  const { backend, gateway } = await start({}, { sealKeys: ['a key for these tests, long enough'] });
  const session = await legacy(gateway.url());
  expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
  await gateway.restart();
  await until(() => backend.open().length === 0, 'the stream of before to be closed');
  expect((await session.request('tools/call', { name: 'echo' })).json.result).toEqual(SAID());
  expect(backend.open()).toHaveLength(1);
});

describe('a server sends', () => {
  const asks = (session: ScriptedSession, method: string, id: Loose) =>
    session.send({ jsonrpc: '2.0', id, method });

  test('a ping, which is answered with or without a client', async () => {
    const { backend, gateway } = await start();
    const session = await legacy(gateway.url());
    await session.request('tools/list');
    const { sessions } = backend;
    const pongs = () => backend.requests.filter(({ json }) => json?.id === 'alive' && json.result);
    asks(sessions[0] as ScriptedSession, 'ping', 'alive');
    await until(() => pongs().length === 1, 'an answer');
    const stream = await session.listen();
    asks(sessions[0] as ScriptedSession, 'ping', 'alive');
    await until(() => pongs().length === 2, 'another answer');
    stream.abort();
  });

  test.each([true, false])(
    'pings without end and takes no answers, which do not accumulate (during a call: %s)',
    async (inCall) => {
      const pester = (session: ScriptedSession) => {
        for (let i = 0; i < 1_000; i++) asks(session, 'ping', `pest-${i}`);
      };
      const { backend, gateway } = await start({
        post: ({ message, session }) => {
          if (inCall && isCall({ message } as Posted)) pester(session);
          return message.method === undefined;
        },
      });
      const session = await legacy(gateway.url());
      const first = () => (inCall ? call(gateway) : session.request('tools/list'));
      expect((await first()).status).toBe(200);
      if (!inCall) pester(backend.sessions[0] as ScriptedSession);
      const pongs = () => backend.requests.filter(({ json }) => json?.result).length;
      await until(() => pongs() >= 16, 'answers');
      for (let i = 0; i < 5; i++) expect((await session.request('tools/list')).status).toBe(200);
      expect(pongs()).toBeLessThanOrEqual(256 + 16);
    },
  );

  test('a request right after the handshake, which reaches a client that opens its stream later', async () => {
    const { backend, gateway } = await start({
      post: (posted) => {
        if (posted.message.method !== 'notifications/initialized') return false;
        asks(posted.session, 'roots/list', 'r1');
        posted.accept();
        return true;
      },
    });
    const session = await legacy(gateway.url(), { capabilities: { roots: {} } });
    const stream = await session.listen();
    const asked = await stream.find(({ json }) => json.method === 'roots/list');
    await session.post({ jsonrpc: '2.0', id: asked.json.id, result: { roots: [] } });
    await until(
      () => backend.requests.find(({ json }) => json?.id === 'r1' && json.result),
      'the answer to reach the server',
    );
    stream.abort();
  });
});

test('a client that does not read delays others only for a moment', async () => {
  const { gateway } = await start({
    post: (posted) => {
      const { session, message } = posted;
      if (!isCall(posted) || message.params.arguments.chatty !== true) return false;
      posted.accept();
      const progressToken = message.params._meta.progressToken;
      const data = 'x'.repeat(50_000);
      for (let progress = 1; progress <= 400; progress++) {
        session.send({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress, message: data },
        });
      }
      posted.reply(SAID());
      return true;
    },
  });
  await list(gateway);
  const params = { name: 'echo', arguments: { chatty: true }, _meta: { progressToken: 'p' } };
  const { headers, body } = modernRequest('tools/call', params);
  const head = {
    ...headers,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  };
  const unread = httpRequest(gateway.url(), { method: 'POST', agent: false, headers: head as Loose });
  unread.end(body);
  await once(unread, 'response');
  const answer = await call(gateway);
  expect(answer.json.result.content[0].text).toBe('done');
  unread.destroy();
});
