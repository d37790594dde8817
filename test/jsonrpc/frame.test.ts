import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Batch,
  errorRope,
  type Frame,
  FrameError,
  type JsonNode,
  MAX_BATCH_ITEMS,
  notificationRope,
  parseBody,
  parseFrame,
  parseLenientFrame,
  parseLenientFrames,
  type RequestId,
  Rope,
  requestRope,
  resultRope,
  textOf,
} from '../../src/jsonrpc/index.js';
import { objectText, space, stringText, valueText } from './json-text.js';

const frame = (text: string) => parseFrame(Buffer.from(text));
const lenient = (text: string) => parseLenientFrame(Buffer.from(text));

function refusal(run: () => unknown): FrameError {
  try {
    run();
  } catch (error) {
    assert(error instanceof FrameError, String(error));
    return error;
  }
  throw new Error('expected a FrameError');
}

const textIn = (read: Frame, node: JsonNode | undefined) => node && textOf(read.bytes, node);

describe('parseFrame', () => {
  it('reads a request', () => {
    const read = frame(' {"jsonrpc":"2.0","id":7,"method":"tools\\/call","params":{"n":1.0},"extra":[]} ');
    assert(read.type === 'request');
    expect([read.id, read.method, textIn(read, read.params)]).toEqual(['7', 'tools/call', '{"n":1.0}']);
  });

  it('reads a notification', () => {
    const read = frame('{"method":"notifications/initialized","jsonrpc":"2.0"}');
    assert(read.type === 'notification');
    expect([read.method, read.params]).toEqual(['notifications/initialized', undefined]);
  });

  it('reads a result of any kind', () => {
    const read = frame('{"jsonrpc":"2.0","id":"a","result":null}');
    assert(read.type === 'result');
    expect([read.id, textIn(read, read.result)]).toEqual(['"a"', 'null']);
  });

  it('reads an error with and without an id', () => {
    const read = frame('{"jsonrpc":"2.0","id":null,"error":{"code":-31999,"message":"m","data":{"k":1E2}}}');
    assert(read.type === 'error');
    expect([read.id, read.code, read.message, textIn(read, read.data)]).toEqual([
      undefined,
      -31999,
      'm',
      '{"k":1E2}',
    ]);
    expect(frame('{"jsonrpc":"2.0","error":{"code":1,"message":""}}')).toMatchObject({
      type: 'error',
      id: undefined,
    });
  });

  it.each(['0', '-1', '9007199254740993', '-0', '""', '"1"', '"\\u0061é"'])(
    'keeps the id %s as written',
    (id) => {
      expect(frame(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)).toMatchObject({ type: 'request', id });
    },
  );

  it.each(['null', 'true', '{}', '[]', '1.5', '1.0', '1e2', '1E2'])(
    'refuses a request with the id %s',
    (id) => {
      expect(refusal(() => frame(`{"jsonrpc":"2.0","id":${id},"method":"m"}`))).toMatchObject({
        code: -32600,
        id: undefined,
      });
    },
  );

  it.each([
    ['', -32700, undefined],
    ['{"jsonrpc":"2.0","id":1,"method":"m"', -32700, undefined],
    ['{"jsonrpc":"2.0","id":1,"method":"m"}{}', -32700, undefined],
    ['[]', -32600, undefined],
    ['"m"', -32600, undefined],
    ['{}', -32600, undefined],
    ['{"id":1,"method":"m"}', -32600, '1'],
    ['{"jsonrpc":"1.0","id":1,"method":"m"}', -32600, '1'],
    ['{"jsonrpc":2.0,"id":1,"method":"m"}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"method":null}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"error":"m"}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":1}}', -32600, '1'],
    ['{"jsonrpc":"2.0","result":{}}', -32600, undefined],
    ['{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"m"}', -32600, undefined],
    ['{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}', -32600, '1'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}', -32600, '1'],
    ['{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}', -32600, '1'],
  ])('refuses %s', (text, code, id) => {
    expect(refusal(() => frame(text))).toMatchObject({ code, id });
  });

  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":null}', '{"jsonrpc":"2.0","id":1,"method":"m"}'],
    ['{"params":null,"jsonrpc":"2.0","method":"m","x":1.0}', '{"jsonrpc":"2.0","method":"m","x":1.0}'],
  ])('reads %s as a call without params', (text, without) => {
    const read = frame(text);
    expect(read).toMatchObject({ method: 'm', params: undefined });
    expect(read.bytes.toString()).toBe(without);
  });

  it('reads an envelope with thousands of unknown members', () => {
    const extra = Array.from({ length: 4000 }, (_, i) => `"x${i}":{}`).join(',');
    expect(frame(`{${extra},"jsonrpc":"2.0","id":1,"method":"m"}`)).toMatchObject({
      type: 'request',
      id: '1',
    });
  });
});

describe('parseBody', () => {
  it('reads one message, after a byte order mark too', () => {
    expect(parseBody(Buffer.from('\ufeff{"jsonrpc":"2.0","id":1,"method":"m"}'))).toMatchObject({
      type: 'request',
    });
  });

  it('keeps an invalid message of a batch as its error', () => {
    const batch = parseBody(
      Buffer.from(
        '[ {"jsonrpc":"2.0","id":1,"method":"m"}, 1, {"jsonrpc":"2.0","id":"x"}, {"jsonrpc":"2.0","method":"n"} ]',
      ),
    ) as Batch;
    expect(batch.type).toBe('batch');
    expect(batch.items).toMatchObject([
      { type: 'request', id: '1' },
      { code: -32600, id: undefined },
      { code: -32600, id: '"x"' },
      { type: 'notification', method: 'n' },
    ]);
  });

  it('refuses an empty, an oversized and a broken batch', () => {
    expect(refusal(() => parseBody(Buffer.from('[]'))).code).toBe(-32600);
    expect(refusal(() => parseBody(Buffer.from('[{},')))).toMatchObject({ code: -32700 });
    const many = `[${'1,'.repeat(MAX_BATCH_ITEMS)}1]`;
    expect(refusal(() => parseBody(Buffer.from(many))).code).toBe(-32600);
  });
});

describe('parseLenientFrame', () => {
  it.each([
    [
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}',
      { type: 'error', id: undefined, code: -32000 },
    ],
    ['{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}', { type: 'error', id: undefined }],
    [
      '{"jsonrpc":"2.0","id":"server-error","error":{"code":0,"message":"m"}}',
      { type: 'error', id: '"server-error"' },
    ],
    [
      '{"jsonrpc":"2.0","id":7.0,"error":{"message":"m"}}',
      { type: 'error', id: '7.0', code: 0, message: 'm' },
    ],
    ['{"jsonrpc":"2.0","id":1,"error":"boom"}', { type: 'error', id: '1', code: 0, message: 'boom' }],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":null}', { type: 'result', id: '1' }],
    ['{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}', { type: 'error', code: 1 }],
    ['{"jsonrpc":"2.0","id":{},"result":{}}', { type: 'result', id: undefined }],
    ['{"jsonrpc":"2.0","id":1,"method":"m"}', { type: 'request', id: '1' }],
  ])('accepts %s', (text, expected) => {
    expect(lenient(text)).toMatchObject(expected);
  });

  it.each([
    '<html>',
    '{"id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":null,"method":"m"}',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
  ])('refuses %s', (text) => {
    refusal(() => lenient(text));
  });

  it.each(['null', '[]', '[ ]'])('reads params %s of a server as none', (params) => {
    const [read] = parseLenientFrames(Buffer.from(`{"jsonrpc":"2.0","method":"m","params":${params}}`));
    expect(read).toMatchObject({ type: 'notification', method: 'm', params: undefined });
    expect(read?.bytes.toString()).toBe('{"jsonrpc":"2.0","method":"m"}');
  });

  it('reads the messages of an array and skips invalid ones', () => {
    const two =
      '[{"jsonrpc":"2.0","id":1,"result":{}}, 5, {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}]';
    expect(parseLenientFrames(Buffer.from(two)).map((read) => read.type)).toEqual(['result', 'error']);
    expect(parseLenientFrames(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}'))).toHaveLength(1);
    expect(refusal(() => parseLenientFrames(Buffer.from('[5]'))).code).toBe(-32600);
    expect(refusal(() => parseLenientFrames(Buffer.from('[]'))).code).toBe(-32600);
  });
});

describe('building frames', () => {
  const text = (rope: Rope) => rope.toBuffer().toString();

  it('writes requests, notifications, results and errors', () => {
    const params = new Rope().push('{"a":1}');
    expect(text(requestRope(7, 'tools/call', params))).toBe(
      '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1}}',
    );
    expect(text(requestRope('"a"' as RequestId, 'x"y', undefined))).toBe(
      '{"jsonrpc":"2.0","id":"a","method":"x\\"y"}',
    );
    expect(text(notificationRope('n', params))).toBe('{"jsonrpc":"2.0","method":"n","params":{"a":1}}');
    expect(text(notificationRope('n', undefined))).toBe('{"jsonrpc":"2.0","method":"n"}');
    expect(text(resultRope('1' as RequestId, new Rope().push('{}')))).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{}}',
    );
    expect(text(errorRope(undefined, -32700, 'no "JSON"'))).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no \\"JSON\\""}}',
    );
    expect(text(errorRope('1' as RequestId, 1, 'm', '[1.0]'))).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":[1.0]}}',
    );
  });

  it('rewrites the envelope and keeps params and result byte for byte', () => {
    const id = fc.oneof(fc.bigInt().map(String), stringText);
    const payload = fc.oneof(
      fc.tuple(
        fc.constant('params'),
        objectText.map((made) => made.text),
      ),
      fc.tuple(fc.constant('result'), valueText),
    );
    fc.assert(
      fc.property(
        id,
        payload,
        stringText,
        fc.array(space, { minLength: 12, maxLength: 12 }),
        fc.nat(),
        (id, [name, body], method, gaps, order) => {
          const members = [
            `"jsonrpc"${gaps[0]}:${gaps[1]}"2.0"`,
            `"id"${gaps[2]}:${gaps[3]}${id}`,
            `"${name}":${gaps[4]}${body}`,
          ];
          if (name === 'params') members.push(`"method":${gaps[5]}${method}`);
          members.push(...members.splice(0, order % members.length));
          const bytes = Buffer.from(
            `${gaps[6]}{${gaps[7]}${members.join(`${gaps[8]},${gaps[9]}`)}${gaps[10]}}${gaps[11]}`,
          );

          const read = parseBody(bytes);

          if (read.type === 'request') {
            assert.equal(read.id, id);
            assert.equal(read.method, JSON.parse(method));
            const { start, end } = read.params as JsonNode;
            const rope = requestRope(42, read.method, new Rope().pushSlice(read.bytes, start, end));
            assert.equal(
              text(rope),
              `{"jsonrpc":"2.0","id":42,"method":${JSON.stringify(read.method)},"params":${body}}`,
            );
          } else {
            assert(read.type === 'result');
            const { start, end } = read.result;
            const rope = resultRope(read.id as RequestId, new Rope().pushSlice(read.bytes, start, end));
            assert.equal(text(rope), `{"jsonrpc":"2.0","id":${id},"result":${body}}`);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});
