import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rope } from '../../src/jsonrpc/index.js';

describe('Rope', () => {
  it('returns the buffer itself if it is the only slice', () => {
    const bytes = Buffer.from('{"a":1}');
    expect(new Rope().push(bytes).toBuffer()).toBe(bytes);
  });

  it('does not copy a large slice before toBuffer', () => {
    const bytes = Buffer.alloc(10_000, '0123456789');
    const rope = new Rope().push('[').pushSlice(bytes, 2, 9_002).push(']');
    const slice = rope.chunks[1] as Buffer;
    expect(slice.buffer).toBe(bytes.buffer);
    expect(slice.toString()).toBe(bytes.toString('latin1', 2, 9_002));
    expect(rope.toBuffer().toString()).toBe(`[${bytes.toString('latin1', 2, 9_002)}]`);
  });

  it('does not copy slices once the rope is large', () => {
    const bytes = Buffer.alloc(100_000, 'x');
    const rope = new Rope();
    for (let at = 0; at < 100_000; at += 1_000) rope.push(',').pushSlice(bytes, at, at + 1_000);
    const kept = rope.chunks.filter((chunk) => chunk.buffer === bytes.buffer);
    expect(kept.length).toBeGreaterThan(20);
    expect(rope.toBuffer().toString()).toBe(`,${'x'.repeat(1_000)}`.repeat(100));
  });

  it('joins adjacent slices', () => {
    const bytes = Buffer.from('0123456789');
    const rope = new Rope().pushSlice(bytes, 2, 5).pushSlice(bytes, 5, 5).pushSlice(bytes, 5, 7);
    expect(rope.chunks.map(String)).toEqual(['23456']);
  });

  it('appends the present content of another rope', () => {
    const bytes = Buffer.from('abcdef');
    const inner = new Rope().pushSlice(bytes, 0, 2);
    const outer = new Rope().push('<').push(inner);
    inner.pushSlice(bytes, 2, 4);
    expect(outer.push('>').toBuffer().toString()).toBe('<ab>');
    expect(inner.push(inner).toBuffer().toString()).toBe('abcdabcd');
  });

  it('can be appended to after toBuffer', () => {
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

  it('is the concatenation of its parts, with their byte length', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 120 }),
      fc.string({ maxLength: 120 }),
      fc.integer({ min: 4_000, max: 4_200 }).map((length) => 'é'.repeat(length)),
    );
    const part = fc.oneof(
      text,
      text.map((content) => Buffer.from(content)),
      fc
        .array(text, { maxLength: 3 })
        .map((parts) => parts.reduce((rope, part) => rope.push(part), new Rope())),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const rope = new Rope();
        for (const part of parts) rope.push(part);
        const expected = Buffer.concat(
          parts.map((part) =>
            typeof part === 'string' ? Buffer.from(part) : Buffer.isBuffer(part) ? part : part.toBuffer(),
          ),
        );
        assert.equal(rope.byteLength, expected.length);
        assert.deepEqual(Buffer.concat(rope.chunks), expected);
        assert.equal(rope.toLatin1(), expected.toString('latin1'));
        assert.deepEqual(rope.toBuffer(), expected);
        assert.equal(rope.toLatin1(), expected.toString('latin1'));
      }),
      { numRuns: 500 },
    );
  });
});
