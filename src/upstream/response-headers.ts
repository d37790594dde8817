import { ByteTable } from '../jsonrpc/index.js';

/** The headers of an answer that mean something to the gateway, by lower-cased name. */
export type ResponseHeaders = Record<string, string | string[] | undefined>;

const WANTED = [
  'content-type',
  'content-encoding',
  'content-length',
  'location',
  'mcp-session-id',
  'retry-after',
  'set-cookie',
  'www-authenticate',
] as const;

/** The length of a name tells most of the unwanted ones, which are most of them, without reading it. */
const BY_LENGTH = new Map<number, readonly string[]>();
for (const name of WANTED) BY_LENGTH.set(name.length, [...(BY_LENGTH.get(name.length) ?? []), name]);

/** @param raw names and values in turn, as they came */
export function readHeaders(raw: readonly Buffer[]): ResponseHeaders {
  const headers: ResponseHeaders = {};
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = wantedName(raw[i] as Buffer);
    if (name === undefined) continue;
    const bytes = raw[i + 1] as Buffer;
    const value = name.startsWith('content-') ? commonValue(bytes) : bytes.toString('latin1');
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else headers[name] = Array.isArray(before) ? [...before, value] : [before, value];
  }
  return headers;
}

/** Most answers have their type in common, and many their length. */
const values = new ByteTable<string>(256);
const LONGEST_REMEMBERED = 64;

function commonValue(raw: Buffer): string {
  if (raw.length > LONGEST_REMEMBERED) return raw.toString('latin1');
  let value = values.get(raw, 0, raw.length);
  if (value === undefined) {
    value = raw.toString('latin1');
    values.set(raw, 0, raw.length, value);
  }
  return value;
}

function wantedName(raw: Buffer): string | undefined {
  for (const name of BY_LENGTH.get(raw.length) ?? []) if (isName(raw, name)) return name;
  return undefined;
}

function isName(raw: Buffer, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const byte = raw[i] as number;
    // Sets the bit that makes letters small; the hyphen has it already.
    if ((byte | 0x20) !== name.charCodeAt(i)) return false;
  }
  return true;
}
