import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rope } from '../../src/jsonrpc/index.js';

describe('Rope', () => {
  it('gives back the very buffer that is its only piece', () => {
    const bytes = Buffer.from('{"a":1}');
    expect(new Rope().push(bytes).toBuffer()).toBe(bytes);
  });

  it('copies nothing before it is asked for a buffer', () => {
    const bytes = Buffer.from('0123456789');
    const rope = new Rope().push('[').pushSlice(bytes, 2, 5).push(']');
    const slice = rope.pieces[1] as Buffer;
    expect(slice.buffer).toBe(bytes.buffer);
    expect(slice.toString()).toBe('234');
  });

  it('joins slices that follow one another', () => {
    const bytes = Buffer.from('0123456789');
    const rope = new Rope().pushSlice(bytes, 2, 5).pushSlice(bytes, 5, 5).pushSlice(bytes, 5, 7);
    expect(rope.pieces.map(String)).toEqual(['23456']);
  });

  it('takes of another rope what that holds at the time', () => {
    const bytes = Buffer.from('abcdef');
    const inner = new Rope().pushSlice(bytes, 0, 2);
    const outer = new Rope().push('<').push(inner);
    inner.pushSlice(bytes, 2, 4);
    expect(outer.push('>').toBuffer().toString()).toBe('<ab>');
    expect(inner.push(inner).toBuffer().toString()).toBe('abcdabcd');
  });

  it('can go on after it was made a buffer', () => {
    const rope = new Rope().push('a').push('b');
    const first = rope.toBuffer();
    expect(rope.toBuffer().toString()).toBe(first.toString());
    expect(rope.push('c').toBuffer().toString()).toBe('abc');
    expect(first.toString()).toBe('ab');
    expect(rope.byteLength).toBe(3);
  });

  it('writes strings as JSON text', () => {
    for (const value of [
      '',
      'tools/call',
      'a"b',
      'back\\slash',
      'é',
      '\u2028',
      '\ud800',
      '\n',
      'x'.repeat(100),
    ]) {
      expect(new Rope().pushString(value).toBuffer().toString()).toBe(JSON.stringify(value));
    }
  });

  it('is the same as its pieces one after the other, and knows their length', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 120 }), fc.string({ maxLength: 120 }));
    const piece = fc.oneof(
      text,
      text.map((content) => Buffer.from(content)),
      fc
        .array(text, { maxLength: 3 })
        .map((parts) => parts.reduce((rope, part) => rope.push(part), new Rope())),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const rope = new Rope();
        for (const part of pieces) rope.push(part);
        const expected = Buffer.concat(
          pieces.map((part) =>
            typeof part === 'string' ? Buffer.from(part) : Buffer.isBuffer(part) ? part : part.toBuffer(),
          ),
        );
        assert.equal(rope.byteLength, expected.length);
        assert.deepEqual(Buffer.concat(rope.pieces.map((part) => Buffer.from(part as string))), expected);
        assert.deepEqual(rope.toBuffer(), expected);
      }),
      { numRuns: 500 },
    );
  });
});
