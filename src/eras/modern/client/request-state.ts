import { createHash } from 'node:crypto';
import type { Sealer } from '../../../exchange/seal.js';
import type { Principal } from '../../../exchange/types.js';
import { elementsOf, type JsonNode, membersOf } from '../../../jsonrpc/index.js';

/** What a retry proves by the state that it brings back (basic/patterns/mrtr, "Server Requirements"). */
export interface RequestState {
  /** The process that holds the call. */
  readonly instance: string;
  /** The parked call; empty where the retry simply is the call once more. */
  readonly call: string;
  readonly round: number;
  readonly principal: Principal;
  /** Whose the credential was by its own words, since credentials are renewed; undefined where it has none. */
  readonly owner?: string | undefined;
  /** Of the method and the params of the original request. */
  readonly digest: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** A state is of no use on another route, not even where that leads to the same backend. */
const purposeOf = (route: string): string => `request state ${route}`;

export function sealState(sealer: Sealer, route: string, state: RequestState): string {
  const { instance, call, round, principal, digest, expiresAt, owner } = state;
  const content = [instance, call, round, principal, digest, expiresAt];
  return sealer.seal(purposeOf(route), JSON.stringify(owner === undefined ? content : [...content, owner]));
}

/** @returns undefined for what the gateway, or another with its key, did not seal exactly so for this route */
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

/** Members of the params that differ from one try of a request to the next. */
const PER_TRY: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);
/** Deeper than this, values are compared as they are written. */
const CANONICAL_LEVELS = 64;

/** Tells whether two requests ask for the same: method and params, whatever the order of their keys. */
export function requestDigest(method: string, bytes: Buffer, params: JsonNode | undefined): string {
  const hash = createHash('sha256').update(method).update('\0');
  if (params !== undefined) {
    const members = membersOf(bytes, params).filter(({ key }) => !PER_TRY.has(key));
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
