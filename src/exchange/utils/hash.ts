import { createHash } from 'node:crypto';

/** In base64url. */
export function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url');
}

const LONGEST_KEY = 256;

/** A text that stands for another one in keys: the text itself if it is short, else its digest. */
export function keyText(text: string): string {
  return text.length <= LONGEST_KEY ? text : `sha256:${sha256(text)}`;
}

/** JSON text with the keys of every object in order: equal for values that mean the same. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`);
  return `{${members.join(',')}}`;
}
