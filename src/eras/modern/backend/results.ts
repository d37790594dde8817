import type { Caller } from '../../../exchange/caller.js';
import { type ExchangeError, exchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { PendingEdits, ResultOutcome } from '../../../exchange/outcome.js';
import { repairResult } from '../../../exchange/repair-result.js';
import { CACHEABLE } from '../../../exchange/result-cache/cache-key.js';
import type { Freshness } from '../../../exchange/result-cache/cached-result.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  type ResultFrame,
  Rope,
  stringOf,
  textOf,
} from '../../../jsonrpc/index.js';
import type { Transport } from '../../../upstream/transport.js';
import { mentionsAnnotation } from '../wire/header-annotations.js';
import { decodeResult } from '../wire/results.js';
import { type ToolMap, toolTraits } from '../wire/tool-traits.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';

/** The `resultType` of a result; undefined if it has none. */
export function resultTypeOf({ bytes, result }: ResultFrame): string | undefined {
  return stringOf(bytes, getMember(bytes, result, 'resultType'));
}

export interface ResultSource {
  /** Reports what the backend does wrong. */
  readonly transport: Pick<Transport, 'reportDeviation'>;
  /** The tools of the backend, where a call of one is answered. */
  readonly tools?: ToolMap | undefined;
}

/**
 * The outcome for a result of a modern backend: unchanged for a caller of this era, decoded for one of another era.
 * @throws ExchangeError for a type of result that the other era does not have
 */
export function resultOutcome(
  exchange: Exchange,
  frame: ResultFrame,
  { transport, tools }: ResultSource,
): ResultOutcome {
  const { request, caller } = exchange;
  const report = (what: string): void => transport.reportDeviation(what);
  const repaired = repairResult(request.method, frame.bytes, frame.result, report);
  const { bytes, node: result } = repaired ?? { bytes: frame.bytes, node: frame.result };
  const sameEra = caller.era === 'modern';
  const edits: PendingEdits = new Map();
  const type = getMember(bytes, result, 'resultType');
  if (type === undefined) report('leaves resultType out of its results');
  if (!sameEra) {
    if (type !== undefined && stringOf(bytes, type) !== 'complete') throw unexpectedType(textOf(bytes, type));
    decodeResult(bytes, result, edits);
    if (request.method === 'tools/list') dropInvalidTools(bytes, result, edits);
  }
  return {
    type: 'result',
    bytes,
    node: result,
    edits,
    form: sameEra ? 'modern' : 'neutral',
    serverInfo: undefined,
    personal: type !== undefined && textOf(bytes, type) !== '"complete"',
    freshness: CACHEABLE.has(request.method) ? freshnessOf(bytes, result, caller) : undefined,
    frameId: sameEra && repaired === undefined && isPlainFrame(frame) ? frame.id : undefined,
    objectOutput: request.name === undefined ? undefined : tools?.get(request.name)?.objectOutput,
  };
}

/** A time to live in milliseconds; 0 if it is invalid. */
export function validTtl(bytes: Buffer, node: JsonNode | undefined): number {
  const ttlMs = node?.kind === 'number' ? Number(textOf(bytes, node)) : 0;
  return Number.isSafeInteger(ttlMs) && ttlMs > 0 ? ttlMs : 0;
}

/** How long a complete result may be cached (server/utilities/caching). */
function freshnessOf(bytes: Buffer, result: JsonNode, caller: Caller): Freshness | undefined {
  const ttl = getMember(bytes, result, 'ttlMs');
  const ttlMs = validTtl(bytes, ttl);
  if (ttlMs === 0) return undefined;
  const type = getMember(bytes, result, 'resultType');
  if (type !== undefined && stringOf(bytes, type) !== 'complete') return undefined;
  const scope = stringOf(bytes, getMember(bytes, result, 'cacheScope'));
  // A result that needed a credential is not shared, even if the backend calls it public.
  return { ttlMs, hintMs: ttlMs, shared: scope === 'public' && caller.forwarded.authorization === undefined };
}

function dropInvalidTools(bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  const list = getMember(bytes, result, 'tools');
  if (list?.kind !== 'array') return;
  const tools = elementsOf(bytes, list);
  const valid = tools.filter(
    (tool) => !mentionsAnnotation(bytes, tool) || toolTraits(bytes, tool) !== undefined,
  );
  if (valid.length === tools.length) return;
  const out = new Rope().push('[');
  for (const [index, tool] of valid.entries()) {
    out.push(index === 0 ? '' : ',').pushSlice(bytes, tool.start, tool.end);
  }
  edits.set('tools', out.push(']'));
}

function unexpectedType(type: string): ExchangeError {
  return exchangeError(MODERN_BACKEND_ERRORS.ERAGATE_RESULT_TYPE, { type: type.slice(0, 100) });
}

/** Whether the bytes are one message with the three members of a response only, so that it can be passed on as it is. */
function isPlainFrame({ bytes, root }: ResultFrame): boolean {
  return root.members?.length === 3 && root.start === 0 && root.end === bytes.length;
}
