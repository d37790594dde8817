import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Rope } from '../../src/jsonrpc/index.js';
import { LineReader } from '../../src/upstream/stdio/line-reader.js';
import { asLine, idAtEnds } from '../../src/upstream/stdio/messages.js';

/** Lines that a reader emits for a text in chunks of these sizes. */
function read(text: Buffer, sizes: readonly number[], limit = 1_000_000): (string | number)[] {
  const seen: (string | number)[] = [];
  const reader = new LineReader(limit, {
    onLine: (line) => seen.push(line.toString('latin1')),
    onOversized: ({ byteLength }) => seen.push(byteLength),
  });
  let at = 0;
  for (let i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    reader.push(text.subarray(at, at + size));
    at += size;
  }
  reader.end();
  return seen;
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
const text = fc
  .array(fc.constantFrom('a', 'ł', '\r', '\n', '\r\n', '{}', ' '), { maxLength: 60 })
  .map((parts) => Buffer.from(parts.join('')));

describe('a reader of lines', () => {
  test('splits at LF and CRLF, across chunks', () => {
    fc.assert(
      fc.property(text, sizes, (bytes, pieces) => {
        const expected = bytes
          .toString('latin1')
          .split('\n')
          .map((line) => line.replace(/\r$/, ''))
          .filter((line) => line !== '');
        expect(read(bytes, pieces)).toEqual(expected);
      }),
    );
  });

  test('reports the length of lines above the limit, and emits all others whole', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 8 }), sizes, (lengths, pieces) => {
        const bytes = Buffer.from(lengths.map((length) => `${'x'.repeat(length)}\n`).join(''));
        const expected = lengths.map((length) => (length > 20 ? length : 'x'.repeat(length)));
        expect(read(bytes, pieces, 20)).toEqual(expected);
      }),
    );
  });

  test('emits nothing during a pause, and everything after it', () => {
    fc.assert(
      fc.property(text, sizes, fc.integer({ min: 1, max: 3 }), (bytes, pieces, every) => {
        const seen: string[] = [];
        const reader = new LineReader(1_000, {
          onLine: (line) => {
            seen.push(line.toString('latin1'));
            if (seen.length % every === 0) reader.pause();
          },
          onOversized() {},
        });
        let at = 0;
        for (let i = 0; at < bytes.length; i++) {
          const size = pieces[i % pieces.length] ?? 1;
          reader.push(bytes.subarray(at, at + size));
          at += size;
        }
        for (let i = 0; i < 100; i++) reader.resume();
        reader.end();
        expect(seen).toEqual(read(bytes, pieces));
      }),
    );
  });

  test('keeps only both ends of a line above the limit', () => {
    const ends: number[] = [];
    const reader = new LineReader(1_000, {
      onLine() {},
      onOversized: ({ head, tail }) => ends.push(head.length, tail.length),
    });
    const chunk = Buffer.alloc(64 * 1024, 'x');
    for (let i = 0; i < 2_000; i++) reader.push(chunk);
    reader.push(Buffer.from('\n'));
    expect(ends).toEqual([4096, 4096]);
  });
});

test.each([
  ['{"jsonrpc":"2.0","id":7,"result":{"a":"', '"}}', '7'],
  [' { "id" : "a\\"b" , "jsonrpc":"2.0","result":{', '}}', '"a\\"b"'],
  ['{"result":{"id":1', '"},"jsonrpc":"2.0","id":8}', '8'],
  ['{"result":{"x":"', '"},"id": -9 , "jsonrpc":"2.0"} \r', '-9'],
  ['{"result":{"x":"', '","id":5}}', undefined],
  ['{"method":"x","params":{"id":1', '"}}', undefined],
  ['{"result":"\\"id\\":5', '\\"id\\":5"}', undefined],
])('the id of a message of which the ends are %s and %s is %s', (head, tail, id) => {
  expect(idAtEnds(Buffer.from(head), Buffer.from(tail))).toBe(id);
});

test('line breaks between tokens become spaces, and nothing else changes', () => {
  const message = '{\r\n "a": "x\\n",\n"ł":1}';
  expect(asLine(new Rope().push(message)).toBuffer().toString()).toBe('{   "a": "x\\n", "ł":1}');
  const rope = new Rope().push('{"a":1}');
  expect(asLine(rope)).toBe(rope);
});
