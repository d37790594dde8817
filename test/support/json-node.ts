import type { Params } from '../../src/exchange/exchange.js';
import type { BackendErrorOutcome, PendingEdits, ResultOutcome } from '../../src/exchange/outcome.js';
import {
  type ErrorFrame,
  getMember,
  type JsonNode,
  parseLenientFrame,
  Rope,
  scanJson,
  writeObject,
} from '../../src/jsonrpc/index.js';

/** JSON text as the codecs take it. */
export function scanned(text: string): { bytes: Buffer; node: JsonNode } {
  const bytes = Buffer.from(text);
  return { bytes, node: scanJson(bytes, 3) };
}

/** JSON text after changes. */
export function edited(text: string, edits: PendingEdits): string {
  const { bytes, node } = scanned(text);
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out.toBuffer().toString();
}

/** A result on its way to a client. */
export function resultOutcome(text: string, more: Partial<ResultOutcome> = {}): ResultOutcome {
  return {
    type: 'result',
    ...scanned(text),
    edits: new Map(),
    form: 'neutral',
    serverInfo: undefined,
    frameId: undefined,
    ...more,
  };
}

/** The text that an outcome has by now. */
export function written({ bytes, node, edits }: ResultOutcome): string {
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out.toBuffer().toString();
}

/** The frame of an error whose object is `text`. */
export function errorFrame(text: string): ErrorFrame {
  const frame = parseLenientFrame(Buffer.from(`{"jsonrpc":"2.0","id":1,"error":${text}}`));
  if (frame.type !== 'error') throw new TypeError(`not an error: ${text}`);
  return frame;
}

/** An error on its way to a client. */
export function errorOutcome(code: number, more: Partial<BackendErrorOutcome> = {}): BackendErrorOutcome {
  return {
    type: 'error',
    origin: 'backend',
    form: 'neutral',
    code,
    message: 'm',
    data: undefined,
    raw: undefined,
    status: 200,
    headers: undefined,
    ...more,
  };
}

/** Params of a client's request; undefined for a request without any. */
export function paramsOf(text: string | undefined, envelopeKeys: readonly string[] = []): Params {
  if (text === undefined) return { bytes: Buffer.alloc(0), node: undefined, meta: undefined, envelopeKeys };
  const { bytes, node } = scanned(text);
  const meta = getMember(bytes, node, '_meta');
  return { bytes, node, meta: meta?.kind === 'object' ? meta : undefined, envelopeKeys };
}
