import { expect, test } from 'vitest';
import { CookieJar } from '../../src/upstream/cookies.js';

test('a cookie that is set again replaces the earlier one', () => {
  const jar = new CookieJar('lb=a; other=1=2');
  jar.keep({ 'set-cookie': ['lb=b; Path=/; HttpOnly', 'new=x; Secure'] });
  expect(jar.header).toBe('other=1=2; lb=b; new=x');
  jar.keep({ 'set-cookie': 'other=; Max-Age=0' });
  expect(jar.header).toBe('lb=b; new=x');
});

test('the number of cookies is bounded: the oldest are dropped', () => {
  const jar = new CookieJar();
  for (let n = 0; n < 1_000; n++) jar.keep({ 'set-cookie': [`c${n}=${n}`, 'lb=a'] });
  const names = jar.header?.split('; ') ?? [];
  expect(names).toHaveLength(50);
  expect(names.slice(-2)).toEqual(['c999=999', 'lb=a']);
});

test.each([`big=${'x'.repeat(5_000)}`, 'a=b\u0001c', '', ';', '=', '=v; Path=/', 'a'])(
  'a cookie that browsers reject is ignored: %s',
  (line) => {
    const jar = new CookieJar();
    jar.keep({ 'set-cookie': [line, 'lb=a'] });
    expect(jar.header).toBe('lb=a');
  },
);
