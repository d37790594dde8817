import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import { connectV1 } from '../../support/clients.js';
import { type LegacySession, legacy } from '../../support/raw.js';

const TOOLS = {
  free: { inputSchema: { type: 'object' } },
  object: { inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
  list: { inputSchema: { type: 'object' }, outputSchema: { type: 'array' } },
  either: {
    inputSchema: { type: 'object' },
    outputSchema: { anyOf: [{ type: 'object' }, { type: 'string' }] },
  },
};
const text = (value: string) => ({ type: 'text', text: value });
const VALUES = ['[1,2.0,{"k":1E2}]', '"a\\u0041"', '7.0', 'true', 'null', '[]'];

describe('structured content of a modern backend for a legacy client', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LM');
    const tools = Object.entries(TOOLS).map(([name, tool]) => ({ name, ...tool }));
    rig.answer('tools/list', `{"tools":${JSON.stringify(tools)}}`);
  });
  afterAll(() => rig.close());

  describe.each(VALUES)('that is %s', (value) => {
    test.each(Object.keys(TOOLS))('is wrapped into an object, and told as text: %s', async (name) => {
      rig.answer('tools/call', `{"content":[],"structuredContent":${value}}`);
      const { answer, json } = await rig.call('tools/call', { name });
      expect(answer).toContain(`"structuredContent":{"result":${value}}`);
      expect(json.result.content).toEqual([text(value)]);
    });

    test('keeps the content that is there, and adds no second text', async () => {
      const image = { type: 'image', data: 'AA==', mimeType: 'image/png' };
      rig.answer('tools/call', `{"structuredContent":${value},"content":[${JSON.stringify(image)}]}`);
      expect((await rig.call('tools/call', { name: 'list' })).json.result.content).toEqual([
        image,
        text(value),
      ]);
      rig.answer('tools/call', `{"structuredContent":${value},"content":[{"type":"text","text":"said"}]}`);
      expect((await rig.call('tools/call', { name: 'list' })).json.result.content).toEqual([text('said')]);
      rig.answer('tools/call', `{"structuredContent":${value}}`);
      expect((await rig.call('tools/call', { name: 'list' })).json.result.content).toEqual([text(value)]);
    });
  });

  test('that is an object stays as it is, unless the list shows the tool with a wrapped schema', async () => {
    for (const [name, wrapped] of [
      ['free', false],
      ['unlisted', false],
      ['object', false],
      ['list', true],
      ['either', true],
    ] as const) {
      rig.answer('tools/call', '{"content":[],"structuredContent":{"a":1.0}}');
      const { answer } = await rig.call('tools/call', { name });
      const expected = wrapped ? '{"result":{"a":1.0}}' : '{"a":1.0}';
      expect(answer).toContain(`"structuredContent":${expected}`);
    }
  });

  test('of an error is no instance of the schema', async () => {
    rig.answer('tools/call', '{"content":[],"structuredContent":{"why":1.0},"isError":true}');
    const { answer } = await rig.call('tools/call', { name: 'list' });
    expect(answer).toContain('"structuredContent":{"why":1.0}');
  });

  test('fits the listed schema in the eyes of a client that checks it', async () => {
    const client = await connectV1(rig.gateway.url());
    await client.listTools();
    rig.answer('tools/call', '{"content":[],"structuredContent":[1,2]}');
    expect((await client.callTool('list')).structuredContent).toEqual({ result: [1, 2] });
    await client.close();
  });
});

const AUDIO = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' };
const LINK = { type: 'resource_link', uri: 'file:///a', name: 'a' };
const IMAGE = { type: 'image', data: 'AA==', mimeType: 'image/png' };
const EMBEDDED = { type: 'resource', resource: { uri: 'a:b', text: 'x' } };
const NEW = { type: 'hologram', data: 'AA==' };

describe('content of a modern backend for a client of an older revision', () => {
  let rig: Rig;
  const sessions: Record<string, LegacySession> = {};
  const sessionOf = (version: string) => sessions[version] as LegacySession;
  beforeAll(async () => {
    rig = await startCell('LM');
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
      sessions[version] = await legacy(rig.gateway.url(), { version });
  });
  afterAll(() => rig.close());

  const CARRIED: Record<string, object[]> = {
    '2024-11-05': [text('t'), IMAGE, EMBEDDED],
    '2025-03-26': [text('t'), IMAGE, EMBEDDED, AUDIO],
    // What is newer still is for clients that know it.
    '2025-06-18': [text('t'), IMAGE, EMBEDDED, AUDIO, LINK, NEW],
    '2025-11-25': [text('t'), IMAGE, EMBEDDED, AUDIO, LINK, NEW],
  };

  test.each(Object.keys(CARRIED))(
    '%s: has text in place of blocks that the revision lacks',
    async (version) => {
      const blocks = [text('t'), IMAGE, EMBEDDED, AUDIO, LINK, NEW];
      rig.answer('tools/call', `{"content":${JSON.stringify(blocks)}}`);
      const { content } = (await sessionOf(version).request('tools/call', { name: 'free' })).json.result;
      expect(content).toHaveLength(blocks.length);
      for (const [index, block] of blocks.entries()) {
        const carried = CARRIED[version]?.some((one) => JSON.stringify(one) === JSON.stringify(block));
        expect(content[index]).toEqual(carried ? block : { type: 'text', text: expect.any(String) });
      }
      if (version === '2024-11-05') {
        expect(content[3].text).toContain('audio/wav');
        expect(content[4].text).toContain('file:///a');
      }
    },
  );

  test.each(Object.keys(CARRIED))('%s: has the same in the messages of a prompt', async (version) => {
    const messages = [AUDIO, LINK, IMAGE].map((content) => ({ role: 'user', content }));
    rig.answer('prompts/get', `{"description":"d","messages":${JSON.stringify(messages)}}`);
    const { result } = (await sessionOf(version).request('prompts/get', { name: 'p' })).json;
    expect(result.description).toBe('d');
    for (const [index, { content }] of messages.entries()) {
      const carried = CARRIED[version]?.some((one) => JSON.stringify(one) === JSON.stringify(content));
      expect(result.messages[index]).toEqual({
        role: 'user',
        content: carried ? content : { type: 'text', text: expect.any(String) },
      });
    }
  });

  test.each([
    ['2024-11-05', true],
    ['2025-03-26', true],
    ['2025-06-18', false],
    ['2025-11-25', false],
  ])('%s: has structured content told as text where the revision has none: %s', async (version, told) => {
    rig.answer('tools/call', '{"content":[],"structuredContent":{"a":1.0}}');
    const { result } = (await sessionOf(version).request('tools/call', { name: 'free' })).json;
    expect(result.content).toEqual(told ? [text('{"a":1.0}')] : []);
  });
});
