import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteTable } from '../../src/jsonrpc/index.js';

describe('ByteTable', () => {
  test('returns the value set last for the same bytes, or nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 60 }), (texts) => {
        const table = new ByteTable<string>(16);
        for (const text of texts) table.set(text, 0, text.length, Buffer.from(text).toString('hex'));
        for (const text of texts) {
          const found = table.get(text, 0, text.length);
          expect([undefined, Buffer.from(text).toString('hex')]).toContain(found);
        }
      }),
    );
  });

  test('finds equal bytes at any offset, and no part of them', () => {
    const table = new ByteTable<number>(64);
    const bytes = Buffer.from('..abcdefghijklmnopqrstuvwxyz..');
    table.set(bytes, 2, 28, 1);
    expect(table.get(Buffer.from('abcdefghijklmnopqrstuvwxyz'), 0, 26)).toBe(1);
    expect(table.get(bytes, 2, 27)).toBeUndefined();
    expect(table.get(Buffer.from('abcdefghijklmnopqrsTuvwxyz'), 0, 26)).toBeUndefined();
  });

  test('copies the bytes of the key', () => {
    const table = new ByteTable<number>(64);
    const bytes = Buffer.from('abc');
    table.set(bytes, 0, 3, 1);
    bytes.write('xyz');
    expect(table.get(Buffer.from('abc'), 0, 3)).toBe(1);
    expect(table.get(bytes, 0, 3)).toBeUndefined();
  });

  test('keeps a pinned value when another text has the same slot', () => {
    const table = new ByteTable<string>(1);
    table.pin(Buffer.from('pinned'), 'pinned');
    table.set(Buffer.from('other'), 0, 5, 'other');
    expect(table.get(Buffer.from('pinned'), 0, 6)).toBe('pinned');
    expect(table.get(Buffer.from('other'), 0, 5)).toBeUndefined();
  });
});
