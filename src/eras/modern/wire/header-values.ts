import { isUtf8 } from 'node:buffer';

const ENCODED = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/;
const LOOKS_ENCODED = /^=\?base64\?.*\?=$/s;
/** Texts that are sent unencoded: printable ASCII without space at the ends; not the empty one, which proxies drop. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const ASCII = /^[\t\x20-\x7e]*$/;
/** Readers that only compare prefix and suffix take this for an encoded value. */
const SHORTEST_LOOKALIKE = '=?base64?=';

/** A text as a header value; encoded as base64 where HTTP could not carry it unchanged (basic/transports, SEP-2243). */
export function encodeHeaderValue(text: string): string {
  if (isName(text)) return text;
  if (PLAIN.test(text) && !LOOKS_ENCODED.test(text) && text !== SHORTEST_LOOKALIKE) return text;
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Whether a header value is that of a text. Most values are the text itself, which needs no decoding. */
export function isHeaderOf(value: string, text: string): boolean {
  return (value === text && isName(text)) || decodeHeaderValue(value) === text;
}

/** Whether a text is visible ASCII and cannot be taken for an encoded value; most names are. */
function isName(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x21 || code > 0x7e) return false;
  }
  return text !== '' && text.charCodeAt(0) !== 0x3d;
}

/** @returns undefined for an encoded value that is not base64 of UTF-8, and for bytes outside ASCII */
export function decodeHeaderValue(value: string): string | undefined {
  if (!LOOKS_ENCODED.test(value)) return ASCII.test(value) ? value : undefined;
  const encoded = ENCODED.exec(value)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
