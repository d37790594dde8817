import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, raw, startCell } from '../../support/cells.js';
import { sleep, until } from '../../support/net.js';
import { send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const SERVED = [
  '0',
  '1',
  '-1',
  '-0',
  '9007199254740993',
  '123456789012345678901234567890',
  '""',
  '"1"',
  '"1e3"',
  '"a b/ü"',
  '"\\u0041\\u00e9"',
  '"\\ud83d\\ude00"',
  `"${'x'.repeat(2_000)}"`,
];
/** MCP's ids are strings and integers; a number with a fraction or an exponent is refused, whatever its value. */
const REFUSED = ['null', 'true', 'false', '{}', '[]', '[1]', '1.5', '1.0', '1e2'];

const idIn = (text: string) => /"id":\s*("(?:[^"\\]|\\.)*"|[^,}]*)/.exec(text)?.[1];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  describe.each([
    ['JSON', false],
    ['an event stream', true],
  ])('with answers as %s', (_as, sse) => {
    // As a server written in JavaScript does it: the id is read and written again.
    const answerWith = (id: (given: unknown) => unknown, member: 'result' | 'error' = 'result') =>
      rig.on('tools/call', ({ json, sendJson, stream }) => {
        const outcome =
          member === 'result' ? rig.result('{"content":[]}') : { error: { code: -31000, message: 'm' } };
        const whole = { jsonrpc: '2.0', id: id(json.id), ...outcome };
        if (!sse) return void sendJson(whole) as undefined;
        const events = stream();
        events.event(whole);
        return void events.end() as undefined;
      });

    test.each(SERVED)('serves the id %s and echoes it as it was written', async (id) => {
      answerWith((given) => given);
      for (const member of ['result', 'error'] as const) {
        answerWith((given) => given, member);
        const { answer, status } = await rig.call('tools/call', { name: 'echo' }, { id: raw(id) });
        expect(status).toBe(200);
        expect(idIn(answer)).toBe(id);
        expect(answer).toContain(`"${member}":{`);
      }
    });

    test.each([
      ['as a string', (given: unknown) => String(given)],
      ['null', () => null],
      ['not at all', () => undefined],
      ['as "server-error"', () => 'server-error'],
    ])('gives an error to its caller when the backend echoes the id %s', async (_how, id) => {
      answerWith(id, 'error');
      const { json, status } = await rig.call('tools/call', { name: 'echo' }, { id: 7 });
      expect(status).toBe(200);
      expect(json).toMatchObject({ id: 7, error: { code: -31000, message: 'm' } });
    });

    test.each([
      ['as a string', (given: unknown) => String(given)],
      ['as a fraction', (given: unknown) => raw(`${given}.0`)],
      ['null', () => null],
      ['not at all', () => undefined],
    ])('gives a result to its caller when the backend echoes the id %s', async (_how, id) => {
      answerWith(id);
      const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 7 });
      expect(json).toMatchObject({ id: 7, result: { content: [] } });
    });
  });

  test.each(REFUSED)('refuses the id %s, and nothing reaches the backend', async (id) => {
    const before = rig.backend.requests.length;
    const { status, json } = await rig.call('tools/call', { name: 'echo' }, { id: raw(id) });
    expect(status).toBe(400);
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: expect.stringContaining('id') },
    });
    expect(rig.backend.requests.length).toBe(before);
  });

  test('keeps 1 and "1" apart, at the same time and in any order of answers', async () => {
    const pending: (() => void)[] = [];
    rig.on('tools/call', async ({ params }) => {
      await new Promise<void>((resolve) => pending.push(resolve));
      return rig.result(`{"content":[],"structuredContent":{"n":${params.arguments.n}}}`);
    });
    const calls = [raw('1'), raw('"1"'), raw('2')].map((id, n) =>
      rig.call('tools/call', { name: 'echo', arguments: { n } }, { id }),
    );
    await until(() => pending.length === 3, 'all calls to arrive');
    for (const answer of pending.reverse()) {
      answer();
      await sleep(5);
    }
    const answers = await Promise.all(calls);
    expect(answers.map(({ answer }) => idIn(answer))).toEqual(['1', '"1"', '2']);
    expect(answers.map(({ json }) => json.result.structuredContent.n)).toEqual([0, 1, 2]);
  });

  test('takes an answer out of an array, also from among other messages', async () => {
    const note =
      '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":"x"}}';
    for (const array of [(own: string) => `[${own}]`, (own: string) => ` [ ${note} , ${own} ]\n`]) {
      for (const sse of [false, true]) {
        rig.on('tools/call', ({ id, sendJson, stream }) => {
          const { text } = rig.result('{"content":[],"structuredContent":{"a":1.0}}').result;
          const body = array(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`);
          if (!sse) return void sendJson(body) as undefined;
          const events = stream();
          events.event(body.trim());
          return void events.end() as undefined;
        });
        const { answer, json } = await rig.call('tools/call', { name: 'echo' }, { id: 'x' });
        expect(json).toMatchObject({ jsonrpc: '2.0', id: 'x', result: { structuredContent: { a: 1 } } });
        expect(answer).toContain('{"a":1.0}');
      }
    }
  });

  test.each(['[', '[{]', '{"jsonrpc":"2.0"', '[1,null]', 'null', '"x"', '{}', ' '])(
    'answers with an error when the backend answers %j, and lives on',
    async (body) => {
      for (const sse of [false, true]) {
        rig.on('tools/call', ({ sendJson, stream }) => {
          if (!sse) return void sendJson(body) as undefined;
          const events = stream();
          events.event(body);
          return void events.end() as undefined;
        });
        const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 5 });
        expect(json).toMatchObject({ id: 5, error: { code: -32603, message: expect.any(String) } });
      }
      rig.on('tools/call', undefined);
      expect((await rig.call('tools/call', { name: 'echo', arguments: {} })).json.result).toBeDefined();
    },
  );

  test('writes no id into notifications, and counts its own requests in integers from one', async () => {
    rig.on('tools/call', undefined);
    await rig.call('tools/call', { name: 'echo' }, { id: 'abc' });
    for (const { json } of rig.backend.requests) {
      if (json?.method?.startsWith('notifications/')) expect(json).not.toHaveProperty('id');
      // Between modern parties the client's own id goes along: there, each request is a stream of its own.
      else if (cell !== 'MM' && json?.method === 'tools/call') expect(json.id).toSatisfy(Number.isInteger);
    }
    const ids = rig.backend.requests
      .filter(({ json }) => cell !== 'MM' && json?.method === 'tools/call')
      .map(({ json }) => json.id);
    expect(new Set(ids).size).toBe(ids.length);
    if (cell !== 'MM') expect(Math.min(...ids)).toBeGreaterThan(0);
  });
});

describe('an id on its way past the gateway', () => {
  test.each(CELLS)('%s: is the right one on errors of the gateway', async (cell) => {
    const rig = await startCell(cell, { route: { timeouts: { connect: '300ms', start: '300ms' } } });
    try {
      await rig.call('tools/list');
      await rig.backend.stop();
      const { json, status } = await rig.call('tools/call', { name: 'echo' }, { id: raw('"\\u0041"') });
      expect(status).toBe(502);
      expect(json.id).toBe('A');
      expect(json.error).toMatchObject({
        code: -32603,
        message: expect.stringContaining('Cannot reach the server behind route'),
      });
    } finally {
      await rig.close();
    }
  });

  test.each(CELLS)('%s: is the right one when the backend breaks the connection', async (cell) => {
    const rig = await startCell(cell);
    try {
      await rig.call('tools/list');
      for (const part of ['nothing', 'a head', 'half a body', 'half an event']) {
        rig.on('tools/call', ({ res, destroy, stream }) => {
          if (part === 'nothing') destroy();
          else if (part === 'half an event') stream().write('data: {"jsonrpc":"2.0","id":');
          else {
            res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
            if (part === 'half a body') res.write('{"jsonrpc":"2.0",');
            res.flushHeaders();
          }
          setTimeout(destroy, 20);
          return undefined;
        });
        const before = rig.backend.received('tools/call').length;
        const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 'z' });
        expect(json).toMatchObject({ id: 'z', error: { code: -32603 } });
        // It may have run.
        expect(rig.backend.received('tools/call').length).toBe(before + 1);
      }
    } finally {
      await rig.close();
    }
  });

  test.each([400, 404, 500, 503])(
    'reaches the caller with an error of HTTP %i whose id is lost',
    async (status) => {
      for (const cell of CELLS) {
        const rig = await startCell(cell);
        // To a request on a session, this status says that there is no such session.
        if (status === 404 && !rig.modernBackend) {
          await rig.close();
          continue;
        }
        try {
          await rig.call('tools/list');
          for (const id of ['"id":null,', '', '"id":"server-error",', '"id":"some other",']) {
            rig.on(
              'tools/call',
              ({ sendJson }) =>
                void sendJson(
                  `{"jsonrpc":"2.0",${id}"error":{"code":-31001,"message":"m"}}`,
                  status,
                ) as undefined,
            );
            const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 'own' });
            expect(json).toEqual({ jsonrpc: '2.0', id: 'own', error: { code: -31001, message: 'm' } });
          }
        } finally {
          await rig.close();
        }
      }
    },
  );

  test('is null where it could not be read', async () => {
    const rig = await startCell('MM');
    try {
      const { status, json } = await send(rig.gateway.url(), { body: '{"jsonrpc":"2.0","id":1,"method":' });
      expect(status).toBe(400);
      expect(json).toMatchObject({ id: null, error: { code: -32700 } });
    } finally {
      await rig.close();
    }
  });
});
