import fc from 'fast-check';

/** Generators of JSON texts that are valid and as odd as the grammar allows. */

export interface MemberText {
  /** The name as written, quotes included. */
  readonly key: string;
  readonly value: string;
}

export interface ObjectText {
  readonly text: string;
  readonly members: readonly MemberText[];
}

export const space = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  fc.stringMatching(/^[ \t\r\n]{1,4}$/),
);

const stringPart = fc.oneof(
  fc.stringMatching(/^[ !#-[\]-~]{1,12}$/),
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => text.replace(/["\\]|[^\P{Cc}\x7f-\x9f]/gu, '')),
  fc.constantFrom(
    '\\n',
    '\\"',
    '\\\\',
    '\\/',
    '\\b\\f\\r\\t',
    '\\u0041',
    '\\u0000',
    '\u2028',
    '\x7f',
    '\ufeff',
  ),
  fc.constantFrom(
    '\\ud800',
    '\\uDFFF',
    '\\ud83d\\ude00',
    '\\ude00\\ud83d',
    '😀',
    'é',
    'plain, {"like"'.replaceAll('"', '\\"'),
  ),
  fc.constantFrom(0, 190, 260, 1000).map((length) => 'x'.repeat(length)),
);

export const stringText = fc.array(stringPart, { maxLength: 4 }).map((parts) => `"${parts.join('')}"`);

export const numberText = fc.oneof(
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?$/),
  fc.constantFrom(
    '0',
    '-0',
    '1.0',
    '1E400',
    '-1e-400',
    '9007199254740993',
    '12345678901234567890.123',
    '0e0',
  ),
);

export const keyText = fc.oneof(
  fc.constantFrom(
    '"a"',
    '"\\u0061"',
    '"b"',
    '"1"',
    '"__proto__"',
    '"_meta"',
    '"constructor"',
    '""',
    '"\\ud800"',
  ),
  stringText,
);

const { value, object } = fc.letrec<{ value: string; object: ObjectText; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '{}', '[]', '[ ]', '{ }'),
    numberText,
    stringText,
    tie('array'),
    tie('object').map((made) => made.text),
  ),
  array: fc
    .tuple(space, fc.array(fc.tuple(space, tie('value'), space), { maxLength: 5 }))
    .map(
      ([inner, items]) => `[${items.length === 0 ? inner : items.map((item) => item.join('')).join(',')}]`,
    ),
  object: fc
    .tuple(space, fc.array(fc.tuple(space, keyText, space, space, tie('value'), space), { maxLength: 6 }))
    .map(([inner, items]) => ({
      text: `{${
        items.length === 0
          ? inner
          : items.map(([a, key, b, c, value, d]) => `${a}${key}${b}:${c}${value}${d}`).join(',')
      }}`,
      members: items.map(([, key, , , value]) => ({ key, value })),
    })),
}));

export const valueText = value;
export const objectText = object;
