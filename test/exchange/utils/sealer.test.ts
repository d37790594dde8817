import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { MAX_TOKEN_CHARS, Sealer } from '../../../src/exchange/utils/sealer.js';

const ONE = 'the first secret';
const TWO = 'the second secret';

describe('a sealed text', () => {
  test.each(['', 'a', 'zażółć gęślą jaźń 🎈', '\u0000', '{"a":[1,2]}', 'x'.repeat(5_000)])(
    'comes back as it was: %j',
    (text) => {
      const sealer = new Sealer([ONE]);
      expect(sealer.open('p', sealer.seal('p', text))).toBe(text);
    },
  );

  test('is a header value, and never the same twice', () => {
    const sealer = new Sealer([ONE]);
    const tokens = Array.from({ length: 100 }, () => sealer.seal('session', 'same'));
    expect(new Set(tokens).size).toBe(100);
    for (const token of tokens) expect(token).toMatch(/^[\w-]+$/);
  });

  test('does not show what it holds', () => {
    const token = new Sealer([ONE]).seal('p', 'a secret text');
    expect(Buffer.from(token, 'base64url').toString('latin1')).not.toContain('secret');
  });

  test('opens for its own purpose alone', () => {
    const sealer = new Sealer([ONE]);
    const token = sealer.seal('session', 'x');
    expect(sealer.open('state', token)).toBeUndefined();
    expect(sealer.open('', token)).toBeUndefined();
    expect(sealer.open('session', token)).toBe('x');
  });

  test('does not open when a single bit of it is another', () => {
    const sealer = new Sealer([ONE]);
    const bytes = Buffer.from(sealer.seal('p', 'text'), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(sealer.open('p', changed.toString('base64url')), `bit ${bit}`).toBeUndefined();
    }
  });

  test('has one spelling', () => {
    const sealer = new Sealer([ONE]);
    for (const text of ['', 'a', 'ab']) {
      const token = sealer.seal('p', text);
      const base64 = Buffer.from(token, 'base64url').toString('base64');
      const others = [
        `${token}=`,
        `${token}==`,
        ` ${token}`,
        `${token}\n`,
        `${token.slice(0, 4)} ${token.slice(4)}`,
      ];
      if (base64 !== token) others.push(base64);
      for (const other of others) expect(sealer.open('p', other), JSON.stringify(other)).toBeUndefined();
    }
  });

  test.each(['', 'x', 'null', '%', 'A'.repeat(40), 'a'.repeat(MAX_TOKEN_CHARS + 1)])(
    'is not what nobody sealed: %.20s',
    (token) => {
      expect(new Sealer([ONE]).open('p', token)).toBeUndefined();
    },
  );

  test('that is cut short or made longer does not open', () => {
    const sealer = new Sealer([ONE]);
    const bytes = Buffer.from(sealer.seal('p', 'text'), 'base64url');
    for (let length = 0; length < bytes.length; length++) {
      expect(sealer.open('p', bytes.subarray(0, length).toString('base64url'))).toBeUndefined();
    }
    expect(sealer.open('p', Buffer.concat([bytes, Buffer.from([0])]).toString('base64url'))).toBeUndefined();
  });
});

describe('keys', () => {
  test('the first seals, all of them open', () => {
    const old = new Sealer([ONE]).seal('p', 'old');
    const both = new Sealer([TWO, ONE]);
    const fresh = both.seal('p', 'fresh');
    expect(both.open('p', old)).toBe('old');
    expect(both.open('p', fresh)).toBe('fresh');
    expect(new Sealer([ONE, TWO]).open('p', fresh)).toBe('fresh');
    expect(new Sealer([TWO]).open('p', fresh)).toBe('fresh');
    expect(new Sealer([TWO]).open('p', old)).toBeUndefined();
    expect(new Sealer([ONE]).open('p', fresh)).toBeUndefined();
  });

  test('of two processes are the same for the same secret', () => {
    expect(new Sealer([ONE]).open('p', new Sealer([ONE]).seal('p', 'x'))).toBe('x');
  });

  test('are random where no secret is given', () => {
    const sealer = new Sealer([]);
    const token = sealer.seal('p', 'x');
    expect(sealer.open('p', token)).toBe('x');
    expect(new Sealer([]).open('p', token)).toBeUndefined();
  });

  test('are told apart also where their ids are the same', () => {
    // The id is two bytes of a hash: two secrets with one id are soon found.
    const idOf = (secret: string): string => {
      const key = createHash('sha256').update('eragate seal\0').update(secret).digest();
      return createHash('sha256')
        .update('eragate key id\0')
        .update(key)
        .digest()
        .subarray(0, 2)
        .toString('hex');
    };
    const seen = new Map<string, string>();
    let twins: [string, string] | undefined;
    for (let i = 0; twins === undefined; i++) {
      const secret = `secret number ${i}`;
      const twin = seen.get(idOf(secret));
      if (twin !== undefined) twins = [twin, secret];
      seen.set(idOf(secret), secret);
    }
    const [first, second] = twins;
    expect(new Sealer([first, second]).open('p', new Sealer([second]).seal('p', 'x'))).toBe('x');
    expect(new Sealer([first]).open('p', new Sealer([second]).seal('p', 'x'))).toBeUndefined();
  });
});
