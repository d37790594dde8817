import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ClientCapabilities, Principal } from './types.js';
import { isRecord } from './utils/is-record.js';

export function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A value's JSON text with the keys of every object in order: equal for values that mean the same. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`);
  return `{${members.join(',')}}`;
}

const MEMORY = 1_000;
/** Longer declarations are taken apart each time. */
const REMEMBERED_CHARS = 4_096;
const declared = new LRUCache<string, ClientCapabilities>({ max: MEMORY });

/**
 * Reads a client's declaration. Clients send the same text with every request, so the parsed form is remembered.
 * @param text JSON text of an object
 */
export function readCapabilities(text: string): ClientCapabilities {
  const known = declared.get(text);
  if (known !== undefined) return known;
  const value = JSON.parse(text) as Record<string, unknown>;
  const capabilities = { text, value, key: canonicalJson(value) };
  if (text.length <= REMEMBERED_CHARS) declared.set(text, capabilities);
  return capabilities;
}

/**
 * Whose a credential is by its own words: issuer, subject and client of a JWT. Nobody has verified them here, so this
 * tells which credentials may belong to one owner, and never that they do. Undefined for other credentials.
 */
export function ownerOf(authorization: string | undefined): string | undefined {
  const payload = /^Bearer +[\w-]+\.([\w-]+)\.[\w-]+ *$/i.exec(authorization ?? '')?.[1];
  if (payload === undefined) return undefined;
  const claims = parsed(Buffer.from(payload, 'base64url').toString());
  if (!isRecord(claims)) return undefined;
  const { iss, sub, azp, client_id } = claims;
  if (typeof iss !== 'string' || typeof sub !== 'string') return undefined;
  return sha256(canonicalJson([iss, sub, azp ?? client_id ?? null])).slice(0, 22);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export const ANONYMOUS = 'anonymous' as Principal;
const principals = new LRUCache<string, Principal>({ max: MEMORY });

/** The principal of a credential that the route passes through: a hash, so that no log or key holds the credential. */
export function principalOf(authorization: string | undefined): Principal {
  if (authorization === undefined) return ANONYMOUS;
  let principal = principals.get(authorization);
  if (principal === undefined) {
    principal = sha256(authorization).slice(0, 22) as Principal;
    principals.set(authorization, principal);
  }
  return principal;
}
