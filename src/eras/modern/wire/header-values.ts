import { isUtf8 } from 'node:buffer';

const SENTINEL = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/;
const LOOKS_ENCODED = /^=\?base64\?.*\?=$/s;
/** Printable ASCII with no space at either end is a header value as it is; an empty one is often taken for none. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const ASCII = /^[\t\x20-\x7e]*$/;
/** Readers that look at both ends alone take this for a sentinel, too. */
const SHORTEST_LOOKALIKE = '=?base64?=';

/** A text as a header value: base64 in a sentinel where it could not stand there as it is (basic/transports, SEP-2243). */
export function encodeHeaderValue(text: string): string {
  if (isName(text)) return text;
  if (PLAIN.test(text) && !LOOKS_ENCODED.test(text) && text !== SHORTEST_LOOKALIKE) return text;
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Whether a header value stands for a text. Most are the text itself, which is told without decoding anything. */
export function headerSays(value: string, text: string): boolean {
  return (value === text && isName(text)) || decodeHeaderValue(value) === text;
}

/** Whether a text is made of visible ASCII alone, and cannot be taken for a sentinel: names mostly are. */
function isName(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x21 || code > 0x7e) return false;
  }
  return text !== '' && text.charCodeAt(0) !== 0x3d;
}

/** @returns undefined for a sentinel that does not hold base64 of UTF-8, and for raw bytes outside ASCII */
export function decodeHeaderValue(value: string): string | undefined {
  if (!LOOKS_ENCODED.test(value)) return ASCII.test(value) ? value : undefined;
  const encoded = SENTINEL.exec(value)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
