import { describe, expect, it } from 'vitest';
import { toValidUtf8 } from '../../src/jsonrpc/index.js';

describe('toValidUtf8', () => {
  it('returns valid bytes themselves, a byte order mark included', () => {
    const bytes = Buffer.from('\ufeff{"é":"😀"}');
    expect(toValidUtf8(bytes)).toEqual({ bytes, replaced: false });
    expect(toValidUtf8(bytes).bytes).toBe(bytes);
  });

  it.each([
    ['22c0af97b022', '"����"'],
    ['22eda08022', '"���"'],
    ['22f09f9822', '"�"'],
    ['efbbbfff', '\ufeff�'],
  ])('replaces what is invalid in %s', (hex, expected) => {
    const { bytes, replaced } = toValidUtf8(Buffer.from(hex, 'hex'));
    expect(replaced).toBe(true);
    expect(bytes.toString()).toBe(expected);
  });
});
