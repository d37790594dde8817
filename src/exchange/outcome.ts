import {
  type ErrorFrame,
  getMember,
  type JsonNode,
  Rope,
  scanJson,
  textOf,
  writeObject,
} from '../jsonrpc/index.js';
import type { DeclaredError, MessageValues } from './declare-errors.js';
import type { CachedResult, Freshness } from './result-cache/cached-result.js';
import type { EraName } from './revision.js';

/** Changes to members of a result, collected by the codecs and applied once, when the response is written. */
export type PendingEdits = Map<string, Rope | string | undefined>;

/**
 * A result on its way to the client: the bytes that the backend wrote, and the changes to them. Results of a backend of
 * the caller's era are passed on in that form; others are in the neutral form, which the client side encodes.
 */
export interface ResultOutcome {
  readonly type: 'result';
  readonly bytes: Buffer;
  readonly node: JsonNode;
  readonly edits: PendingEdits;
  readonly form: EraName | 'neutral';
  /** JSON text of the backend's Implementation object. */
  readonly serverInfo: string | undefined;
  /** The id of the message around the result: the message is sent as it is if the id matches and nothing changes. */
  readonly frameId: string | undefined;
  /** Whether the output schema of the called tool describes an object; undefined if that is not known. */
  readonly objectOutput?: boolean | undefined;
  /** Of a list of tools: calls of each may become tasks. */
  readonly takesTasks?: boolean | undefined;
  /** It is the handle of a task in place of the result. */
  readonly isTask?: boolean | undefined;
  /** For this one request only, such as server requests to its client. */
  readonly personal?: boolean | undefined;
  /** How long the result may be cached; undefined for not at all. */
  readonly freshness?: Freshness | undefined;
  /** The entry of a cached result, whose texts in each form are written once. */
  readonly kept?: CachedResult | undefined;
}

/**
 * Where an error was made: `backend` for its JSON-RPC error, `refusal` for one whose HTTP status is meant for the client
 * too, `gateway` for what the gateway makes itself.
 */
export type ErrorOrigin = 'backend' | 'refusal' | 'gateway';

interface ErrorBase {
  readonly type: 'error';
  readonly origin: ErrorOrigin;
  readonly form: EraName | 'neutral';
  readonly code: number;
  readonly message: string;
  /** JSON text of `data`. */
  readonly data: Rope | string | undefined;
  /** JSON text of the whole error object as the backend wrote it, if it is one by JSON-RPC's rules. */
  readonly raw: Buffer | undefined;
  /** HTTP status of the backend's response, or the one that the gateway suggests; the client side decides. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The handler failed because the backend cannot send server requests in its era. */
  readonly cannotAsk?: boolean | undefined;
}

/** A JSON-RPC error of the backend. */
export interface BackendErrorOutcome extends ErrorBase {
  readonly origin: 'backend' | 'refusal';
}

/** An error that the gateway makes. */
export interface GatewayErrorOutcome extends ErrorBase {
  readonly origin: 'gateway';
  readonly declared: DeclaredError | undefined;
  /** What the log tells beyond the message: the backend's address, what it wrote, why a connection broke. */
  readonly detail: string | undefined;
}

/** An error on its way to the client. */
export type ErrorOutcome = BackendErrorOutcome | GatewayErrorOutcome;

export type Outcome = ResultOutcome | ErrorOutcome;

/** A member of a result after the edits so far. */
export function pendingMember(
  { bytes, node, edits }: ResultOutcome,
  key: string,
): { readonly bytes: Buffer; readonly node: JsonNode } | undefined {
  if (!edits.has(key)) {
    const member = getMember(bytes, node, key);
    return member === undefined ? undefined : { bytes, node: member };
  }
  const edited = edits.get(key);
  if (edited === undefined) return undefined;
  const text = typeof edited === 'string' ? Buffer.from(edited) : edited.toBuffer();
  return { bytes: text, node: scanJson(text, 1) };
}

/** A result of the gateway itself. */
export function ownResult(bytes: Buffer, node: JsonNode, serverInfo?: string): ResultOutcome {
  return { type: 'result', bytes, node, edits: new Map(), form: 'neutral', serverInfo, frameId: undefined };
}

export interface ErrorFields {
  readonly code: number;
  readonly message: string;
  readonly data?: Rope | string | undefined;
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An error that the gateway makes itself. */
export function ownError(fields: ErrorFields): GatewayErrorOutcome {
  return {
    type: 'error',
    origin: 'gateway',
    form: 'neutral',
    code: fields.code,
    message: fields.message,
    data: fields.data,
    raw: undefined,
    status: fields.status,
    headers: fields.headers,
    declared: undefined,
    detail: undefined,
  };
}

/** What goes with an error beside its declaration. */
export interface ErrorExtras {
  /** For the log alone: may hold the backend's address and what it wrote. */
  readonly detail?: string | undefined;
  /** Members that the specification puts into `data`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Values for the placeholders of a message, where it has any, and what goes with the error. */
export type ErrorArguments<Placeholder extends string> = [Placeholder] extends [never]
  ? [values?: MessageValues<never>, extras?: ErrorExtras]
  : [values: MessageValues<Placeholder>, extras?: ErrorExtras];

/** An error that the gateway makes itself, as its layer declares it. */
export function gatewayError<Placeholder extends string>(
  declared: DeclaredError<Placeholder>,
  ...[values, extras = {}]: ErrorArguments<Placeholder>
): GatewayErrorOutcome {
  return {
    type: 'error',
    origin: 'gateway',
    form: 'neutral',
    code: declared.code.modern,
    message: declared.message((values ?? {}) as MessageValues<Placeholder>),
    data: declared.data(extras.data),
    raw: undefined,
    status: declared.status.modern,
    headers: declared.headers === undefined ? extras.headers : { ...declared.headers, ...extras.headers },
    declared,
    detail: extras.detail,
  };
}

/**
 * An error that a backend answered with.
 * @param form the era of the backend, where the caller is of the same one
 */
export function backendError(
  frame: ErrorFrame,
  status: number,
  form: ErrorOutcome['form'],
): BackendErrorOutcome {
  const { bytes, error, code, message, data } = frame;
  return {
    type: 'error',
    origin: 'backend',
    form,
    code,
    message,
    data: data === undefined ? undefined : textOf(bytes, data),
    raw: isErrorObject(bytes, error) ? bytes.subarray(error.start, error.end) : undefined,
    status,
    headers: undefined,
  };
}

/** What backends write for an error may be a bare string, or lack its code or its message. */
function isErrorObject(bytes: Buffer, error: JsonNode): boolean {
  return (
    getMember(bytes, error, 'code')?.kind === 'number' &&
    getMember(bytes, error, 'message')?.kind === 'string'
  );
}

/** JSON text of the error object: as the backend wrote it, but for a code and data that the client must have otherwise. */
export function errorObject(error: ErrorOutcome, code = error.code, data = error.data): Rope {
  const { raw, message } = error;
  const text = new Rope();
  if (raw === undefined) {
    text.push(`{"code":${code},"message":`).pushString(message);
    if (data !== undefined) text.push(',"data":').push(data);
    return text.push('}');
  }
  if (code === error.code && data === error.data) return text.push(raw);
  const edits = new Map([
    ['code', String(code)],
    ['data', data],
  ]);
  writeObject(text, raw, scanJson(raw, 1), edits);
  return text;
}
