import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Edits, membersOf, Rope, scanJson, textOf, writeObject } from '../../src/jsonrpc/index.js';
import { objectText, valueText } from './json-text.js';

type Table = readonly (readonly [string, string | undefined])[];

function edited(text: string | undefined, edits: Edits, depth = 1): string {
  const bytes = Buffer.from(text ?? '');
  const out = new Rope();
  writeObject(out, bytes, text === undefined ? undefined : scanJson(bytes, depth), edits);
  return out.toBuffer().toString();
}

describe('writeObject', () => {
  it.each<[string, Table, string]>([
    ['{"a":1,"b":2}', [['a', '9']], '{"a":9,"b":2}'],
    ['{"a":1,"b":2}', [['b', '9']], '{"a":1,"b":9}'],
    ['{"a":1,"b":2}', [['c', '9']], '{"a":1,"b":2,"c":9}'],
    ['{"a":1,"b":2}', [['a', undefined]], '{"b":2}'],
    ['{"a":1,"b":2}', [['b', undefined]], '{"a":1}'],
    ['{"a":1,"b":2,"c":3}', [['b', undefined]], '{"a":1,"c":3}'],
    [
      '{"a":1,"b":2,"c":3}',
      [
        ['a', undefined],
        ['b', undefined],
      ],
      '{"c":3}',
    ],
    [
      '{"a":1,"b":2,"c":3}',
      [
        ['b', undefined],
        ['c', undefined],
      ],
      '{"a":1}',
    ],
    [
      '{"a":1,"b":2,"c":3}',
      [
        ['a', undefined],
        ['b', undefined],
        ['c', undefined],
      ],
      '{}',
    ],
    [
      '{"a":1}',
      [
        ['a', undefined],
        ['b', '2'],
        ['c', '3'],
      ],
      '{"b":2,"c":3}',
    ],
    ['{"a":1}', [['x', undefined]], '{"a":1}'],
    ['{ }', [['a', '1']], '{ "a":1}'],
    ['{"a":1,"a":2,"b":3,"a":4,"b":5}', [['a', '9']], '{"b":3,"a":9,"b":5}'],
    ['{"a":1,"b":2,"a":3}', [['a', undefined]], '{"b":2}'],
    ['{"\\u0061" : 1 , "b":2}', [['a', '[ 9 ]']], '{"\\u0061" : [ 9 ] , "b":2}'],
    [
      '{"n":1.0,"u":18446744073709551615,"e":1E400,"z":-0}',
      [['n', '1.0']],
      '{"n":1.0,"u":18446744073709551615,"e":1E400,"z":-0}',
    ],
    ['{"a":1}', [['q"\\é', '2']], '{"a":1,"q\\"\\\\é":2}'],
    ['{"__proto__":1,"constructor":2}', [['constructor', '3']], '{"__proto__":1,"constructor":3}'],
  ])('turns %s with %j into %s', (text, table, expected) => {
    expect(edited(text, new Map(table), 1)).toBe(expected);
    expect(edited(text, new Map(table), 0)).toBe(expected);
  });

  it('writes a new object without a node', () => {
    expect(
      edited(
        undefined,
        new Map([
          ['a', '1'],
          ['b', undefined],
          ['c', '2'],
        ]),
      ),
    ).toBe('{"a":1,"c":2}');
    expect(edited(undefined, new Map())).toBe('{}');
  });

  it('is the slice itself, uncopied, where nothing changes', () => {
    const bytes = Buffer.from('[{ "a" : 1 }]');
    const out = new Rope();
    writeObject(
      out,
      bytes,
      { kind: 'object', start: 1, end: 12, members: undefined },
      new Map([['b', undefined]]),
    );
    expect(out.chunks).toHaveLength(1);
    expect((out.chunks[0] as Buffer).buffer).toBe(bytes.buffer);
    expect(out.toBuffer().toString()).toBe('{ "a" : 1 }');
  });

  it('accepts ropes as values', () => {
    const value = new Rope().push('[').push('1').push(']');
    expect(edited('{"a":0,"b":2}', new Map([['a', value]]))).toBe('{"a":[1],"b":2}');
  });

  it('keeps other members byte for byte and in order, for any object and edits', () => {
    const edit = fc.tuple(
      fc.nat(9),
      fc.constantFrom('a', 'b', '__proto__', 'new', ''),
      fc.option(valueText, { nil: undefined }),
    );
    fc.assert(
      fc.property(
        objectText,
        fc.array(edit, { maxLength: 4 }),
        fc.nat(2),
        ({ text, members }, list, depth) => {
          const decoded = members.map(({ key, value }) => ({ key: JSON.parse(key) as string, value }));
          const edits = new Map(
            list.map(([index, name, value]) => [decoded[index]?.key ?? name, value] as const),
          );
          const expected: string[][] = [];
          decoded.forEach(({ key, value }, i) => {
            const last = !decoded.slice(i + 1).some((other) => other.key === key);
            if (!edits.has(key)) expected.push([key, value]);
            else if (last && edits.get(key) !== undefined) expected.push([key, edits.get(key) as string]);
          });
          for (const [key, value] of edits) {
            if (value !== undefined && !decoded.some((member) => member.key === key))
              expected.push([key, value]);
          }

          const result = edited(text, edits, depth);

          const bytes = Buffer.from(result);
          const seen = membersOf(bytes, scanJson(bytes, 1)).map(({ key, value }) => [
            key,
            textOf(bytes, value),
          ]);
          // By text: JSON.parse of Node 24.21 misreads an escaped name now and then, as "\\" for "\ud800".
          assert.deepEqual(seen, expected);
        },
      ),
      { numRuns: 2500 },
    );
  });
});
