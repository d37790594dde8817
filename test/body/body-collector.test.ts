import { describe, expect, test } from 'vitest';
import { BodyCollector, BodyTooLargeError } from '../../src/body/body-collector.js';

const KiB = 1024;
const pieces = (...sizes: number[]) => sizes.map((size, n) => Buffer.alloc(size, n + 1));

/** Pushes chunks and takes the body. */
function collected(chunks: readonly Buffer[], announced?: string, limit = 1024 * KiB): Buffer {
  const body = new BodyCollector(limit, announced);
  for (const chunk of chunks) body.push(chunk);
  return body.take();
}

describe('a body', () => {
  test.each([
    ['nothing', pieces()],
    ['an empty chunk', pieces(0)],
    ['one chunk', pieces(10)],
    ['many chunks', pieces(1, 0, 70 * KiB, 3)],
    ['large chunks', pieces(100 * KiB, 100 * KiB)],
  ])('of %s is what came, whatever was announced', (_what, chunks) => {
    const whole = Buffer.concat(chunks);
    for (const announced of [
      undefined,
      '',
      '0',
      '1',
      String(whole.length),
      String(whole.length + 5),
      '200000',
      'x',
    ]) {
      expect(collected(chunks, announced).equals(whole)).toBe(true);
    }
  });

  test('of one chunk is that chunk', () => {
    const [chunk] = pieces(10) as [Buffer];
    expect(collected([chunk])).toBe(chunk);
  });

  test('of announced length is gathered into one buffer of that length', () => {
    const body = collected(pieces(50 * KiB, 50 * KiB), String(100 * KiB));
    expect(body.buffer.byteLength).toBe(100 * KiB);
  });

  test('may come up to the limit, and no further', () => {
    expect(collected(pieces(5, 5), undefined, 10)).toHaveLength(10);
    expect(() => collected(pieces(5, 6), undefined, 10)).toThrow(BodyTooLargeError);
    expect(() => collected(pieces(5, 6), '1', 10)).toThrow('larger than 10 bytes');
  });

  test('is refused before it comes where too much is announced', () => {
    expect(() => new BodyCollector(10, '11')).toThrow(BodyTooLargeError);
    expect(() => new BodyCollector(10, '10')).not.toThrow();
  });
});
