import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, raw, startCell } from '../../support/cells.js';

/** Texts that a parser and a writer between the ends would change, each a member of an object. */
const MEMBERS: Record<string, string> = {
  'integers beyond 2^53': '"id":9007199254740993,"u":18446744073709551615,"neg":-9007199254740995',
  'fractions, exponents and a minus zero':
    '"f":0.1,"d":1.0,"e":1E400,"s":1e-7,"z":-0,"n":12345678901234567890.123',
  'keys like integers, out of order': '"2":"b","1":"a","10":0',
  'a key that comes twice': '"dup":1,"between":true,"dup":2',
  'escapes where none are needed': '"esc":"\\u0041\\/\\ud83d\\ude00\\u2028","\\u006bey":1',
  'half a surrogate pair and a NUL': '"lone":"\\ud800","nul":"a\\u0000b"',
  'text outside ASCII': '"naïve":"日本語 🙂 \u2028\u2029"',
  'keys with a meaning to JavaScript':
    '"__proto__":{"x":1},"constructor":{"prototype":{"y":1}},"toString":null',
  'white space and empty values': '"ws" : [ 1 ,\t2 ] , "o":{ },"a":[ ],"":"", "n":null',
  'names that the protocol uses elsewhere':
    '"jsonrpc":"1.0","id2":{"method":"x","params":{},"result":1},"resultType":"weird","ttlMs":-1,"cacheScope":7,"_meta":{"io.modelcontextprotocol/protocolVersion":"x","progressToken":1},"content":0,"isError":"no","structuredContent":[1]',
  'deep nesting': `"deep":${'[{"k":'.repeat(40)}0${'}]'.repeat(40)}`,
};
const ALL = `{${Object.values(MEMBERS).join(',')}}`;

describe.each(CELLS)('%s', (cell) => {
  describe.each([
    ['JSON', false],
    ['an event stream', true],
  ])('with answers as %s', (_as, sse) => {
    let rig: Rig;
    beforeAll(async () => {
      rig = await startCell(cell, {
        script: { sse, capabilities: { tools: {}, prompts: {}, resources: {} } },
      });
    });
    afterAll(() => rig.close());

    test.each(Object.entries(MEMBERS))('passes arguments with %s byte for byte', async (_what, members) => {
      rig.answer('tools/call', '{"content":[]}');
      await rig.call('tools/call', { name: 'echo', arguments: raw(`{${members}}`) });
      expect(rig.sent('tools/call')).toContain(`"arguments":{${members}}`);
    });

    test.each(Object.entries(MEMBERS))('passes a result with %s byte for byte', async (_what, members) => {
      const value = `{${members}}`;
      const parts = [
        `"content":[{"type":"text","text":"x","annotations":${value}},{"type":"text","text":"y","_meta":${value}}]`,
        `"structuredContent":${value}`,
        `"x-vendor":${value}`,
      ];
      rig.answer('tools/call', `{${parts.join(',')},"_meta":{"com.example/k":${value}}}`);
      const { answer, status } = await rig.call('tools/call', { name: 'echo', arguments: {} });
      expect(status).toBe(200);
      for (const part of parts) expect(answer).toContain(part);
      expect(answer).toContain(`"com.example/k":${value}`);
    });

    test('passes the data of an error byte for byte', async () => {
      const error = `{"code":-31999,"message":"m \\u00e9","data":${ALL},"x-vendor":1.0}`;
      rig.on('tools/call', ({ id, sendJson, stream }) => {
        const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}`;
        if (!sse) return void sendJson(text) as undefined;
        const events = stream();
        events.event(text);
        return void events.end() as undefined;
      });
      const { answer, json } = await rig.call('tools/call', { name: 'echo', arguments: {} }, { id: 'e1' });
      expect(json.id).toBe('e1');
      expect(answer).toContain(`"error":${error}`);
    });

    test('passes params of other methods and members that no revision knows', async () => {
      rig.answer('prompts/get', '{"messages":[]}');
      await rig.call('prompts/get', {
        name: 'p',
        arguments: raw('{"a":"\\u0041"}'),
        'x-vendor': raw(ALL),
        task: raw('{"ttl":60000.0}'),
      });
      const sent = rig.sent('prompts/get');
      expect(sent).toContain('"arguments":{"a":"\\u0041"}');
      expect(sent).toContain(`"x-vendor":${ALL}`);
      expect(sent).toContain('"task":{"ttl":60000.0}');

      rig.answer('acme/search', `{"hits":${ALL}}`);
      const found = await rig.call('acme/search', { q: raw(ALL) });
      expect(rig.sent('acme/search')).toContain(`"q":${ALL}`);
      expect(found.answer).toContain(`"hits":${ALL}`);
    });

    test('passes contents, messages and completions byte for byte', async () => {
      const contents = `"contents":[{"uri":"file:///a","text":"\\u0041","_meta":${ALL}}]`;
      rig.answer('resources/read', `{${contents}}`);
      expect((await rig.call('resources/read', { uri: 'file:///a' })).answer).toContain(contents);

      const messages = `"messages":[ {"role":"user","content":{"type":"text","text":"\\u0041","x":${ALL}}} ]`;
      rig.answer('prompts/get', `{"description":"\\u0041",${messages}}`);
      expect((await rig.call('prompts/get', { name: 'p' })).answer).toContain(
        `"description":"\\u0041",${messages}`,
      );

      const completion = '"completion":{"values":["\\u0041"],"total":3.0,"hasMore":false,"x":1E2}';
      rig.answer('completion/complete', `{${completion}}`);
      const completed = await rig.call('completion/complete', {
        ref: { type: 'ref/prompt', name: 'p' },
        argument: { name: 'a', value: '' },
      });
      expect(completed.answer).toContain(completion);
    });

    test('passes the items of lists, their schemas and cursors byte for byte', async () => {
      const schema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"minimum":1.0}]}},"required":["a"],"x":${ALL}}`;
      const tools = `"tools":[{"name":"t","inputSchema":${schema},"outputSchema":${schema},"annotations":{"x":1.0},"_meta":{"k":${ALL}}}]`;
      rig.answer('tools/list', `{${tools},"nextCursor":"\\u0041=="}`);
      const listed = (await rig.call('tools/list')).answer;
      expect(listed).toContain(tools);
      expect(listed).toContain('"nextCursor":"\\u0041=="');
      await rig.call('tools/list', { cursor: raw('"\\u0041=="') });
      expect(rig.sent('tools/list')).toContain('"cursor":"\\u0041=="');

      for (const [method, member] of [
        ['prompts/list', 'prompts'],
        ['resources/list', 'resources'],
        ['resources/templates/list', 'resourceTemplates'],
      ] as const) {
        rig.answer(method, `{"${member}":[{"name":"\\u0041","x":${ALL}}],"nextCursor":""}`);
        const { answer } = await rig.call(method, {});
        expect(answer).toContain(`"${member}":[{"name":"\\u0041","x":${ALL}}]`);
        expect(answer).toContain('"nextCursor":""');
      }
    });

    test('passes foreign keys of _meta in both directions, in their order', async () => {
      const foreign = '"b.example/2":1.0,"a.example/1":{"k":"\\u0041"},"traceparent":"00-1-2-01"';
      rig.answer('tools/call', `{"content":[],"_meta":{${foreign}}}`);
      const { answer } = await rig.call('tools/call', {
        name: 'echo',
        arguments: {},
        _meta: {
          'b.example/2': raw('1.0'),
          'a.example/1': raw('{"k":"\\u0041"}'),
          traceparent: '00-1-2-01',
        },
      });
      expect(rig.sent('tools/call')).toContain(foreign);
      expect(answer).toContain(foreign);
    });
  });

  test('passes JSON that is laid out in lines, also where it travels as an event', async () => {
    const rig = await startCell(cell);
    try {
      const pretty = JSON.stringify({ a: [1, { b: 'x\ny' }], c: {} }, null, 2);
      const fields = `{\r\n  "content": [\n  ],\n  "structuredContent": ${pretty}\n}`;
      for (const accept of ['application/json, text/event-stream', 'text/event-stream']) {
        rig.on('tools/call', ({ id, sendJson }) => {
          const { text } = rig.result(fields).result;
          return void sendJson(
            `\n{\n "jsonrpc": "2.0",\n "id": ${JSON.stringify(id)},\n "result": ${text}\n}\n`,
          ) as undefined;
        });
        const reply = await rig.call('tools/call', { name: 'echo' }, { headers: { accept } });
        // Line ends between tokens are white space; an event has none.
        const flat = (text: string) => text.replace(/[\r\n]/g, ' ');
        expect(flat(reply.answer)).toContain(`"structuredContent": ${flat(pretty)}`);
        expect(reply.json.result.structuredContent).toEqual({ a: [1, { b: 'x\ny' }], c: {} });
        expect(reply.events.length).toBe(accept.startsWith('text') ? 1 : 0);
      }
    } finally {
      await rig.close();
    }
  });

  test('passes an event of several data lines, in any line ends', async () => {
    const rig = await startCell(cell);
    try {
      for (const eol of ['\n', '\r\n', '\r']) {
        rig.on('tools/call', ({ id, stream }) => {
          const { text } = rig.result('{"content":[],"structuredContent":{"a":1.0}}').result;
          const events = stream();
          const lines = ['{"jsonrpc":"2.0",', `"id":${JSON.stringify(id)},`, `"result":${text}`, '}'];
          events.write(`event: message${eol}${lines.map((line) => `data:${line}${eol}`).join('')}${eol}`);
          return void events.end() as undefined;
        });
        const { answer, json } = await rig.call('tools/call', { name: 'echo' }, { id: 'x' });
        expect(json.id).toBe('x');
        expect(answer).toContain('"structuredContent":{"a":1.0}');
      }
    } finally {
      await rig.close();
    }
  });
});
