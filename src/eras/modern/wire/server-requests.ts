import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import {
  getMember,
  type JsonNode,
  nameMap,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';

type Declared = Readonly<Record<string, unknown>>;

/** A method of server requests that may be an input request (basic/patterns/mrtr, "InputRequests"). */
interface ServerRequestKind {
  /** Prefix of the keys in `inputRequests`. */
  readonly name: string;
  /** @returns the capabilities that the client lacks for the request; undefined if it lacks none */
  lacks(declared: Declared, bytes: Buffer, params: JsonNode | undefined): Declared | undefined;
  /** Params that only the legacy era has. */
  readonly dropped: readonly string[];
  /** Result for a server whose request is not answered, as JSON text; undefined where there is only an error for it. */
  readonly refusal: string | undefined;
}

const KINDS: ReadonlyMap<string, ServerRequestKind> = nameMap({
  'elicitation/create': {
    name: 'elicitation',
    lacks: (declared, bytes, params) => {
      const mode = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'mode'));
      const wanted = mode === 'url' ? 'url' : 'form';
      return takesMode(declared['elicitation'], wanted) ? undefined : { elicitation: { [wanted]: {} } };
    },
    dropped: ['elicitationId', 'task'],
    refusal: '{"action":"cancel"}',
  },
  'sampling/createMessage': {
    name: 'sampling',
    lacks: (declared, bytes, params) => {
      const { sampling } = declared;
      const needsTools = ['tools', 'toolChoice'].some(
        (key) => params !== undefined && getMember(bytes, params, key) !== undefined,
      );
      if (!isRecord(sampling)) return { sampling: needsTools ? { tools: {} } : {} };
      return needsTools && !isRecord(sampling['tools']) ? { sampling: { tools: {} } } : undefined;
    },
    dropped: ['task'],
    refusal: undefined,
  },
  'roots/list': {
    name: 'roots',
    lacks: (declared) => (isRecord(declared['roots']) ? undefined : { roots: {} }),
    dropped: [],
    refusal: undefined,
  },
});

/** Whether a client accepts a mode; elicitation declared without a mode means forms (client/elicitation, "Capabilities"). */
export function takesMode(elicitation: unknown, mode: 'form' | 'url'): boolean {
  if (!isRecord(elicitation)) return false;
  return isRecord(elicitation[mode]) || (mode === 'form' && !isRecord(elicitation['url']));
}

/** The kind of a server request; undefined for a method that no client can be asked. */
export function serverRequestKind(method: string): string | undefined {
  return KINDS.get(method)?.name;
}

/** The capabilities that a client lacks for a server request; undefined if it lacks none. */
export function lackingCapabilities(request: ServerRequest, declared: Declared): Declared | undefined {
  return KINDS.get(request.method)?.lacks(declared, request.bytes, request.params);
}

/** The answer for a server whose request timed out; undefined where there is only an error for it. */
export function refusalOf(method: string): ClientAnswer | undefined {
  const text = KINDS.get(method)?.refusal;
  return text === undefined ? undefined : { result: Buffer.from(text) };
}

/** Members of `_meta` that refer to the server's own session. */
const DROPPED_META = ['progressToken', 'io.modelcontextprotocol/related-task'] as const;

/** The entry of `inputRequests` for a server request. */
export function inputRequest({ method, bytes, params }: ServerRequest): Rope {
  const out = new Rope().push(`{"method":${JSON.stringify(method)}`);
  if (params !== undefined) {
    const edits = new Map<string, Rope | undefined>(
      KINDS.get(method)?.dropped.map((key) => [key, undefined]),
    );
    const meta = getMember(bytes, params, '_meta');
    if (meta?.kind === 'object') {
      const kept = new Rope();
      writeObject(kept, bytes, meta, new Map(DROPPED_META.map((key) => [key, undefined])));
      edits.set('_meta', isEmptyObject(kept) ? undefined : kept);
    }
    out.push(',"params":');
    writeObject(out, bytes, params, edits);
  } else if (method !== 'roots/list') out.push(',"params":{}');
  return out.push('}');
}

function isEmptyObject(rope: Rope): boolean {
  return /^\{\s*\}$/.test(rope.toBuffer().toString('latin1'));
}

/** The client's answer for the server: its result without the members that only this era has. */
export function answerOf(bytes: Buffer, response: JsonNode): ClientAnswer {
  const out = new Rope();
  writeObject(out, bytes, response, new Map([['resultType', undefined]]));
  return { result: out.toBuffer() };
}

/** The input requests for the elicitations of a legacy -32042 error; undefined if it has none. */
export function urlElicitations(data: string): Rope[] | undefined {
  const bytes = Buffer.from(data);
  const list = getMember(bytes, scanJson(bytes, 1), 'elicitations');
  if (list?.kind !== 'array') return undefined;
  const requests: Rope[] = [];
  for (const elicitation of JSON.parse(bytes.subarray(list.start, list.end).toString()) as unknown[]) {
    if (!isRecord(elicitation) || typeof elicitation['url'] !== 'string') continue;
    const { elicitationId: _legacyOnly, ...params } = elicitation;
    requests.push(
      new Rope().push(
        JSON.stringify({ method: 'elicitation/create', params: { message: '', ...params, mode: 'url' } }),
      ),
    );
  }
  return requests.length === 0 ? undefined : requests;
}
