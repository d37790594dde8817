import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';
import { modernRequest, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

/** Bytes that are no UTF-8, and what the Encoding Standard reads there. */
const BROKEN: Record<string, [number[], string]> = {
  'an overlong slash and stray bytes': [[0xc0, 0xaf, 0x97, 0xb0], '\ufffd'.repeat(4)],
  'a byte of Latin-1': [[0xfc], '\ufffd'],
  'half a character': [[0xe6, 0x97], '\ufffd'],
  'a surrogate in UTF-8': [[0xed, 0xa0, 0x80], '\ufffd'.repeat(3)],
  'a code point beyond the last': [[0xf5, 0x80, 0x80, 0x80], '\ufffd'.repeat(4)],
};

/** Text with bytes in place of the mark. */
const splice = (text: string, bytes: number[]) => {
  const [before = '', after = ''] = text.split('%');
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
};

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test.each(Object.entries(BROKEN))(
    'reads replacement characters where a result holds %s, and warns of it once',
    async (_what, [bytes, text]) => {
      for (const sse of [false, true]) {
        rig.on('tools/call', ({ id, sendJson, stream }) => {
          const { text: result } = rig.result('{"content":[{"type":"text","text":"ü%ü"}]}').result;
          const body = splice(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`, bytes);
          if (!sse) return void sendJson(body) as undefined;
          const events = stream();
          events.write(Buffer.concat([Buffer.from('data: '), body, Buffer.from('\n\n')]));
          return void events.end() as undefined;
        });
        const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 'u' });
        expect(json).toMatchObject({ id: 'u', result: { content: [{ text: `ü${text}ü` }] } });
      }
      expect(
        rig.gateway.logs.filter(({ level, deviation }) => level === 40 && /UTF-8/.test(deviation)),
      ).toHaveLength(1);
    },
  );

  test('is undisturbed by a broken notification between the others', async () => {
    rig.on('tools/call', ({ id, frame, stream }) => {
      const events = stream();
      events.write(splice('data: {"jsonrpc":"2.0","method":"%","params":{}}\n\n', [0xff]));
      events.write(splice('data: %\n\n', [0xff, 0xfe]));
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
    expect((await rig.call('tools/call', { name: 'echo' })).json.result.content).toEqual([]);
  });

  /** Sends a body in the name of the rig's client. */
  async function post(method: string, params: object, id: string, edit: (body: string) => string | Buffer) {
    if (rig.modernClient) {
      const request = modernRequest(method, params, { id });
      return send(rig.gateway.url(), { ...request, body: edit(String(request.body)) });
    }
    const { headers } = await rig.session();
    return send(rig.gateway.url(), {
      headers,
      body: edit(JSON.stringify({ jsonrpc: '2.0', id, method, params })),
    });
  }

  // JSON-RPC messages are UTF-8: a client that sends something else is told so, rather than have the tool run with
  // other arguments than it meant.
  test.each(Object.entries(BROKEN))('refuses a request that holds %s', async (_what, [bytes]) => {
    const before = rig.backend.received('tools/call').length;
    const params = { name: 'echo', arguments: { a: '%' } };
    const { status, json } = await post('tools/call', params, 'u', (body) => splice(body, bytes));
    expect(status).toBe(400);
    expect(json).toMatchObject({
      id: 'u',
      error: { code: -32700, message: expect.stringContaining('UTF-8') },
    });
    expect(rig.backend.received('tools/call').length).toBe(before);
  });

  test('joins a character that arrives in two pieces', async () => {
    rig.on('tools/call', async ({ id, stream }) => {
      const { text } = rig.result('{"content":[{"type":"text","text":"日本"}]}').result;
      const body = Buffer.from(`data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}\n\n`);
      const cut = body.indexOf(Buffer.from('本')) + 1;
      const events = stream();
      events.write(body.subarray(0, cut));
      await new Promise((resolve) => setTimeout(resolve, 20));
      events.write(body.subarray(cut));
      return void events.end() as undefined;
    });
    expect((await rig.call('tools/call', { name: 'echo' })).json.result.content[0].text).toBe('日本');
  });

  test('skips a byte order mark in front of either message', async () => {
    rig.on('tools/call', ({ id, sendJson }) => {
      const { text } = rig.result('{"content":[]}').result;
      return void sendJson(
        `\ufeff{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`,
      ) as undefined;
    });
    const { text, json } = await rig.call('tools/call', { name: 'echo' }, { id: 'b' });
    expect(text.startsWith('{')).toBe(true);
    expect(json.result.content).toEqual([]);
    const listed = await post('tools/list', {}, 'b', (body) => `\ufeff${body}`);
    expect(listed.json).toMatchObject({ id: 'b', result: { tools: expect.any(Array) } });
    expect(rig.sent('tools/list').startsWith('{')).toBe(true);
  });
});
