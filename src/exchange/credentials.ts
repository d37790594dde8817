import { LRUCache } from 'lru-cache';
import { canonicalJson, sha256 } from './utils/hash.js';
import { isRecord } from './utils/is-record.js';

/** Who a request comes from, as far as the gateway can tell: a hash of the forwarded credential, or `anonymous`. */
export type Principal = string & { readonly __principal: unique symbol };

/** Of callers without a credential, who may be many people. */
export const ANONYMOUS = 'anonymous' as Principal;

const REMEMBERED = 1_000;
const HASH_CHARS = 22;
/** Longer credentials are hashed each time. */
const REMEMBERED_CHARS = 4_096;
const principals = new LRUCache<string, Principal>({ max: REMEMBERED });

/** The principal of a credential: a hash, so that no log and no key holds the credential. */
export function principalOf(authorization: string | undefined): Principal {
  if (authorization === undefined) return ANONYMOUS;
  let principal = principals.get(authorization);
  if (principal === undefined) {
    principal = sha256(authorization).slice(0, HASH_CHARS) as Principal;
    if (authorization.length <= REMEMBERED_CHARS) principals.set(authorization, principal);
  }
  return principal;
}

/**
 * The owner that a credential names: a hash of issuer, subject and client of a JWT; undefined for other credentials.
 * The gateway does not verify them. Equal owners mean that two credentials may belong to one person, not that they do.
 */
export function ownerOf(authorization: string | undefined): string | undefined {
  const payload = /^Bearer +[\w-]+\.([\w-]+)\.[\w-]+ *$/i.exec(authorization ?? '')?.[1];
  if (payload === undefined) return undefined;
  const claims = parsed(Buffer.from(payload, 'base64url').toString());
  if (!isRecord(claims)) return undefined;
  const { iss, sub, azp, client_id } = claims;
  if (typeof iss !== 'string' || typeof sub !== 'string') return undefined;
  return sha256(canonicalJson([iss, sub, azp ?? client_id ?? null])).slice(0, HASH_CHARS);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
