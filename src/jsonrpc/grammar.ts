/**
 * The grammar of RFC 8259 over bytes. Every function takes the position of the first byte of a construct and
 * returns the position after its last byte, or throws {@link JsonSyntaxError}. Nothing is decoded or copied.
 */

import { nextSpecial } from './string-scan.js';

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;

const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const LOWER_E = 0x65;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const LOWER_U = 0x75;

/** The deepest level of objects and arrays that is accepted. */
export const MAX_NESTING = 10_000;

/** The text is not JSON, or is nested deeper than {@link MAX_NESTING}. */
export class JsonSyntaxError extends Error {
  /** Offset of the first unexpected byte in the scanned buffer. */
  readonly offset: number;

  constructor(expected: string, offset: number) {
    super(`Invalid JSON at byte ${offset}: expected ${expected}`);
    this.name = 'JsonSyntaxError';
    this.offset = offset;
  }
}

/** Position of the first byte at or after `pos` that is no white space, or `end`. */
export function skipSpace(bytes: Buffer, pos: number, end: number): number {
  while (pos < end) {
    const byte = bytes[pos] as number;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return pos;
    pos++;
  }
  return pos;
}

/** @param pos the opening quote */
export function endOfString(bytes: Buffer, pos: number, end: number): number {
  if (pos >= end || bytes[pos] !== QUOTE) throw new JsonSyntaxError('a string', pos);
  pos++;
  for (;;) {
    pos = nextSpecial(bytes, pos, end);
    const byte = pos < end ? bytes[pos] : -1;
    if (byte === QUOTE) return pos + 1;
    if (byte === -1) throw new JsonSyntaxError('the end of a string', pos);
    if (byte !== BACKSLASH) throw new JsonSyntaxError('no control character', pos);
    pos = endOfEscape(bytes, pos, end);
  }
}

/** The byte after a backslash: 1 for an escape of one character, 2 for `u`, which has four digits. */
const ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPES[byte] = 1;
ESCAPES[LOWER_U] = 2;

const HEX_DIGITS = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) HEX_DIGITS[byte] = 1;

function endOfEscape(bytes: Buffer, pos: number, end: number): number {
  const form = pos + 1 < end ? ESCAPES[bytes[pos + 1] as number] : 0;
  if (form === 1) return pos + 2;
  if (form !== 2) throw new JsonSyntaxError('an escape sequence', pos + 1);
  for (let i = pos + 2; i < pos + 6; i++) {
    if (i >= end || HEX_DIGITS[bytes[i] as number] !== 1) throw new JsonSyntaxError('a hexadecimal digit', i);
  }
  return pos + 6;
}

/** @param pos the first digit or the minus sign */
export function endOfNumber(bytes: Buffer, pos: number, end: number): number {
  const first = pos;
  if (pos < end && bytes[pos] === MINUS) pos++;
  if (pos < end && bytes[pos] === ZERO) pos++;
  else pos = endOfDigits(bytes, pos, end, pos === first ? 'a value' : 'a digit');
  if (pos < end && bytes[pos] === DOT) pos = endOfDigits(bytes, pos + 1, end, 'a digit');
  if (pos < end && ((bytes[pos] as number) | 0x20) === LOWER_E) {
    pos++;
    if (pos < end && (bytes[pos] === PLUS || bytes[pos] === MINUS)) pos++;
    pos = endOfDigits(bytes, pos, end, 'a digit');
  }
  return pos;
}

function endOfDigits(bytes: Buffer, pos: number, end: number, expected: string): number {
  const first = pos;
  while (pos < end && isDigit(bytes[pos] as number)) pos++;
  if (pos === first) throw new JsonSyntaxError(expected, pos);
  return pos;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

function endOfLiteral(bytes: Buffer, pos: number, end: number, literal: Buffer): number {
  for (let i = 0; i < literal.length; i++) {
    if (pos + i >= end || bytes[pos + i] !== literal[i]) throw new JsonSyntaxError(`"${literal}"`, pos + i);
  }
  return pos + literal.length;
}

/** A value that is neither an object nor an array. */
export function endOfScalar(bytes: Buffer, pos: number, end: number): number {
  switch (pos < end ? bytes[pos] : -1) {
    case QUOTE:
      return endOfString(bytes, pos, end);
    case LOWER_T:
      return endOfLiteral(bytes, pos, end, TRUE);
    case LOWER_F:
      return endOfLiteral(bytes, pos, end, FALSE);
    case LOWER_N:
      return endOfLiteral(bytes, pos, end, NULL);
    default:
      return endOfNumber(bytes, pos, end);
  }
}

/** Position of a member's value; its name ends at `keyEnd`. */
export function startOfMemberValue(bytes: Buffer, keyEnd: number, end: number): number {
  const colon = skipSpace(bytes, keyEnd, end);
  if (colon >= end || bytes[colon] !== COLON) throw new JsonSyntaxError('":"', colon);
  return skipSpace(bytes, colon + 1, end);
}

/** The closing bracket of each open container. Scans are synchronous, so all of them share one stack. */
const closers = new Uint8Array(MAX_NESTING + 1);

/**
 * Scans any value, without recursion.
 *
 * @param level the nesting level of the value; 1 for the root
 */
export function endOfValue(bytes: Buffer, pos: number, end: number, level: number): number {
  const outside = level - 1;
  let open = outside;
  let closer = 0;
  for (;;) {
    const first = pos < end ? (bytes[pos] as number) : -1;
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (++open > MAX_NESTING) throw new JsonSyntaxError(`at most ${MAX_NESTING} levels of nesting`, pos);
      closer = first + 2;
      closers[open] = closer;
      pos = skipSpace(bytes, pos + 1, end);
      if (pos >= end || bytes[pos] !== closer) {
        if (closer === CLOSE_BRACE) pos = startOfMemberValue(bytes, endOfString(bytes, pos, end), end);
        continue;
      }
      pos++;
      closer = closers[--open] as number;
    } else {
      pos = first === QUOTE ? endOfString(bytes, pos, end) : endOfScalar(bytes, pos, end);
    }
    for (;;) {
      if (open === outside) return pos;
      pos = skipSpace(bytes, pos, end);
      const byte = pos < end ? bytes[pos] : -1;
      if (byte === COMMA) {
        pos = skipSpace(bytes, pos + 1, end);
        if (closer === CLOSE_BRACE) pos = startOfMemberValue(bytes, endOfString(bytes, pos, end), end);
        break;
      }
      if (byte !== closer)
        throw new JsonSyntaxError(closer === CLOSE_BRACE ? '"," or "}"' : '"," or "]"', pos);
      pos++;
      closer = closers[--open] as number;
    }
  }
}
