import { createHash } from 'node:crypto';
import type { Principal } from '../../../exchange/credentials.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import { elementsOf, type JsonNode, membersOf } from '../../../jsonrpc/index.js';

/** The content of a sealed `requestState` (basic/patterns/mrtr, "Server Requirements"). */
export interface RequestState {
  /** The process that holds the call. */
  readonly instance: string;
  /** Id of the parked call; empty where the retry repeats the call. */
  readonly call: string;
  readonly round: number;
  readonly principal: Principal;
  /** The owner that the credential names, for renewed credentials; undefined where it names none. */
  readonly owner?: string | undefined;
  /** Of the original request: its method, params, headers and query. */
  readonly digest: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Binds a state to its route: it is invalid on another route, also of the same backend. */
const purposeOf = (route: string): string => `request state ${route}`;

export function sealState(sealer: Sealer, route: string, state: RequestState): string {
  const { instance, call, round, principal, digest, expiresAt, owner } = state;
  const content = [instance, call, round, principal, digest, expiresAt];
  return sealer.seal(purposeOf(route), JSON.stringify(owner === undefined ? content : [...content, owner]));
}

/** @returns undefined for a token that was not sealed with one of the keys, for this route */
export function openState(sealer: Sealer, route: string, token: string): RequestState | undefined {
  const content = sealer.open(purposeOf(route), token);
  if (content === undefined) return undefined;
  const [instance, call, round, principal, digest, expiresAt, owner] = JSON.parse(content) as [
    string,
    string,
    number,
    Principal,
    string,
    number,
    string | undefined,
  ];
  return { instance, call, round, principal, digest, expiresAt, owner };
}

/** Members of the params that differ between a request and its retries. */
const PER_ATTEMPT: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);
/** Values at deeper levels are compared as text. */
const CANONICAL_LEVELS = 64;

/** What of a request is the same in its retries. */
export interface RepeatedRequest {
  readonly method: string;
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
  readonly forwarded: ForwardedHeaders;
}

/**
 * A digest of method, params, headers and query that is equal for a request and its retries; the order of keys does not
 * matter.
 */
export function requestDigest({ method, bytes, params, forwarded }: RepeatedRequest): string {
  const hash = createHash('sha256').update(method).update('\0');
  if (forwarded.variant !== undefined) hash.update(forwarded.variant).update('\0');
  if (params !== undefined) {
    const members = membersOf(bytes, params).filter(({ key }) => !PER_ATTEMPT.has(key));
    for (const { key, value } of [...members].sort(byKey)) {
      hash
        .update(JSON.stringify(key))
        .update(':')
        .update(canonicalText(bytes, value, CANONICAL_LEVELS))
        .update(',');
    }
  }
  return hash.digest('base64url');
}

/** Digest of the answers of a retry: equal for equal answers, whatever the order of their members. */
export function answersDigest(bytes: Buffer, responses: JsonNode | undefined): string {
  const text = responses === undefined ? '' : canonicalText(bytes, responses, CANONICAL_LEVELS);
  return createHash('sha256').update(text).digest('base64url');
}

const byKey = (a: { key: string }, b: { key: string }): number =>
  a.key < b.key ? -1 : a.key > b.key ? 1 : 0;

function canonicalText(bytes: Buffer, node: JsonNode, levels: number): string {
  if (levels > 0 && node.kind === 'object') {
    const members = [...membersOf(bytes, node)].sort(byKey);
    return `{${members.map(({ key, value }) => `${JSON.stringify(key)}:${canonicalText(bytes, value, levels - 1)}`).join(',')}}`;
  }
  if (levels > 0 && node.kind === 'array') {
    return `[${elementsOf(bytes, node)
      .map((element) => canonicalText(bytes, element, levels - 1))
      .join(',')}]`;
  }
  return bytes.toString('latin1', node.start, node.end);
}
