import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeHeaderValue, encodeHeaderValue } from '../../../../src/eras/modern/wire/header-values.js';

const b64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

test.each([
  ['echo', 'echo'],
  ['a b', 'a b'],
  ['~!@#$%^&*()', '~!@#$%^&*()'],
  ['', '=?base64??='],
  [' a', b64(' a')],
  ['a ', b64('a ')],
  ['\ta', b64('\ta')],
  ['a\tb', b64('a\tb')],
  ['a\nb', b64('a\nb')],
  ['a\r', b64('a\r')],
  ['a\u0000', b64('a\u0000')],
  ['\u007f', b64('\u007f')],
  ['é', b64('é')],
  ['天气', b64('天气')],
  ['=?base64?YQ==?=', b64('=?base64?YQ==?=')],
  ['=?base64?x?=', b64('=?base64?x?=')],
  ['=?base64?=', b64('=?base64?=')],
  ['=?BASE64?YQ==?=', '=?BASE64?YQ==?='],
  ['=?base64?YQ==', '=?base64?YQ=='],
])('the text %j is encoded as %j, and decoded again', (text, header) => {
  expect(encodeHeaderValue(text)).toBe(header);
  expect(decodeHeaderValue(header)).toBe(text);
});

test.each([
  ['=?base64?YQ?=', 'no padding'],
  ['=?base64?YQ=?=', 'too little padding'],
  ['=?base64?YQ===?=', 'too much padding'],
  ['=?base64?Y?=', 'a length that cannot be'],
  ['=?base64? YQ==?=', 'a space'],
  ['=?base64?Y-_=?=', 'the alphabet for URLs'],
  ['=?base64?/w==?=', 'a byte that is no UTF-8'],
  ['=?base64?7aCA?=', 'a surrogate'],
  ['é', 'raw Latin-1'],
  ['\u00c3\u00a9', 'raw UTF-8'],
])('the header %j has %s, and is not decoded', (header) => {
  expect(decodeHeaderValue(header)).toBeUndefined();
});

test('every text is encoded to a valid HTTP header, and decoded again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const header = encodeHeaderValue(text);
      expect(header).toMatch(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/);
      // Half a surrogate pair is no text that UTF-8 could hold.
      expect(decodeHeaderValue(header)).toBe(Buffer.from(text).toString());
    }),
  );
});
