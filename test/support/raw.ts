import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { createParser } from 'eventsource-parser';
import type { Loose } from './net.js';

export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';
export const CLIENT_INFO = { name: 'ExampleClient', version: '1.0.0' };

/** Pairs keep duplicates and the case of names; a record is for the common case. Undefined values are left out. */
export type HeaderList = readonly (readonly [string, string])[] | Record<string, string | undefined>;

/** One event of an SSE stream. `event` and `id` are undefined where the stream gave none. */
export interface RawEvent {
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: string;
  /** `data` parsed, or undefined when it is empty or not JSON. */
  readonly json: Loose;
}

/** An answer that has been read to its end. */
export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly bytes: Buffer;
  readonly text: string;
  /** The JSON-RPC answer: the body, or of a stream the last event that is a result or an error. Undefined if none. */
  readonly json: Loose;
  /** Text of that answer, as it was on the wire: for comparisons byte for byte. */
  readonly answer: string;
  /** The events of a `text/event-stream` body, else empty. */
  readonly events: readonly RawEvent[];
  /** The notifications and server requests among the events. */
  readonly messages: readonly Loose[];
}

/** An answer that is still being received. */
export interface RawStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Events so far; grows. */
  readonly events: readonly RawEvent[];
  /** Comments so far; grows. */
  readonly comments: readonly string[];
  /** The next event that has not been taken yet. Rejects when the stream ends first, or after `timeoutMs` (5000). */
  next(timeoutMs?: number): Promise<RawEvent>;
  /** Takes events until one fits. */
  find(fits: (event: RawEvent) => boolean, timeoutMs?: number): Promise<RawEvent>;
  /** The whole answer, once the other side has ended it. */
  readonly done: Promise<RawResponse>;
  /** True once the stream is over, for whatever reason. */
  readonly ended: boolean;
  /** Breaks the connection, as a client that goes away does. */
  abort(): void;
}

export interface RawRequest {
  /** Default: POST with a body, else GET. */
  method?: string;
  headers?: HeaderList;
  /** Buffers and strings go out as they are, anything else as JSON. */
  body?: unknown;
  /** Leave `host`, `content-type`, `accept` and `content-length` to `headers` alone. */
  bare?: boolean;
  signal?: AbortSignal;
}

function pairs(headers: HeaderList = {}): [string, string][] {
  const entries = Array.isArray(headers) ? headers : Object.entries(headers);
  return entries.filter((pair): pair is [string, string] => pair[1] !== undefined);
}

function parse(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Opens an exchange and resolves as soon as the head of the answer is there. */
export function open(url: string, { body, ...options }: RawRequest = {}): Promise<RawStream> {
  const bytes =
    body === undefined
      ? undefined
      : Buffer.isBuffer(body)
        ? body
        : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const given = pairs(options.headers);
  const named = new Set(given.map(([name]) => name.toLowerCase()));
  const defaults: [string, string][] = options.bare
    ? []
    : [
        ['host', new URL(url).host],
        ['accept', 'application/json, text/event-stream'],
        ...(bytes
          ? ([
              ['content-type', 'application/json'],
              ['content-length', String(bytes.length)],
            ] as [string, string][])
          : []),
      ];
  const headers = [...defaults.filter(([name]) => !named.has(name)), ...given].flat();
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: options.method ?? (bytes ? 'POST' : 'GET'),
      headers,
      agent: false,
      ...(options.signal ? { signal: options.signal } : {}),
    });
    request.on('error', reject);
    request.on('response', (response) => resolve(read(response, () => request.destroy())));
    request.end(bytes);
  });
}

function read(response: IncomingMessage, abort: () => void): RawStream {
  const chunks: Buffer[] = [];
  const events: RawEvent[] = [];
  const comments: string[] = [];
  let taken = 0;
  let ended = false;
  const wakers = new Set<() => void>();
  const wake = () => {
    for (const waker of wakers) waker();
  };
  const streaming = String(response.headers['content-type'] ?? '').startsWith('text/event-stream');
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent: ({ event, id, data }) => events.push({ event, id, data, json: parse(data) }),
    onComment: (comment) => comments.push(comment),
  });
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    if (streaming) parser.feed(decoder.decode(chunk, { stream: true }));
    wake();
  });
  const done = new Promise<RawResponse>((resolve, reject) => {
    const finish = (error?: Error) => {
      ended = true;
      wake();
      if (error) reject(error);
      else resolve(whole(response, Buffer.concat(chunks), events));
    };
    response.on('end', () => finish());
    response.on('error', finish);
    response.on('close', () => {
      if (!response.complete) finish(new Error('the connection closed before the answer was complete'));
    });
  });
  done.catch(() => {});
  const stream: RawStream = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    comments,
    done,
    get ended() {
      return ended;
    },
    async next(timeoutMs = 5_000) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const event = events[taken];
        if (event) {
          taken += 1;
          return event;
        }
        if (ended) throw new Error('the stream ended without another event');
        const left = deadline - Date.now();
        if (left <= 0) throw new Error(`no event within ${timeoutMs} ms`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(finish, left);
          function finish() {
            clearTimeout(timer);
            wakers.delete(finish);
            resolve();
          }
          wakers.add(finish);
        });
      }
    },
    async find(fits, timeoutMs = 5_000) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const event = await stream.next(Math.max(0, deadline - Date.now()));
        if (fits(event)) return event;
      }
    },
    abort,
  };
  return stream;
}

function whole(response: IncomingMessage, bytes: Buffer, events: RawEvent[]): RawResponse {
  const text = bytes.toString('utf8');
  const isAnswer = ({ json }: RawEvent) => json && ('result' in json || 'error' in json);
  const last = events.filter(isAnswer).at(-1);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    bytes,
    text,
    events,
    answer: last?.data ?? text,
    json: last ? last.json : events.length > 0 ? undefined : parse(text),
    messages: events.flatMap(({ json }) => (json && 'method' in json ? [json] : [])),
  };
}

/** Sends a request and reads the answer to its end. */
export async function send(url: string, request: RawRequest = {}): Promise<RawResponse> {
  return (await open(url, request)).done;
}

/** Writes bytes to a fresh TCP connection and gives what came back by the time it closed or fell silent for `ms`. */
export function wire(url: string, bytes: string | Buffer, ms = 1_000): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connectTcp(Number(port), hostname, () => socket.write(bytes));
    socket.setTimeout(ms, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

export interface ModernOptions {
  /** JSON-RPC id; default a fresh number. A `RawJson` goes out as written. */
  id?: unknown;
  /** Headers beside or instead of those derived from the body; undefined leaves one out. */
  headers?: Record<string, string | undefined>;
  /** Members of `_meta` beside or instead of the envelope; undefined leaves one out. */
  meta?: Record<string, unknown>;
  capabilities?: Record<string, unknown>;
  version?: string;
  signal?: AbortSignal;
}

/** JSON text to be put into a body as it is. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** `JSON.stringify`, but `RawJson` members come out as written. */
export function rawStringify(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => rawStringify(item ?? null)).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${rawStringify(member)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

let nextId = 100;

/** A header value as the specification wants it: plain if it is visible ASCII, else in the base64 sentinel. */
export function headerValue(value: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return plain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

const NAMED: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** Builds the HTTP request of a modern MCP request: envelope, `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`. */
export function modernRequest(method: string, params: Loose = {}, options: ModernOptions = {}): RawRequest {
  const version = options.version ?? MODERN;
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
    'io.modelcontextprotocol/clientCapabilities': options.capabilities ?? {},
  };
  const withMeta =
    params instanceof RawJson
      ? params
      : { ...params, _meta: { ...params._meta, ...envelope, ...options.meta } };
  const id = 'id' in options ? options.id : nextId++;
  const name = params[NAMED[method] ?? ''];
  return {
    headers: {
      'mcp-protocol-version': version,
      'mcp-method': method,
      'mcp-name': typeof name === 'string' ? headerValue(name) : undefined,
      ...options.headers,
    },
    body: rawStringify({ jsonrpc: '2.0', id, method, params: withMeta }),
    ...(options.signal ? { signal: options.signal } : {}),
  };
}

/** Sends a modern request and reads the answer. */
export function modern(url: string, method: string, params?: Loose, options?: ModernOptions) {
  return send(url, modernRequest(method, params, options));
}

/** Sends a modern request and gives the answer's stream, to look into or to break off. */
export function openModern(url: string, method: string, params?: Loose, options?: ModernOptions) {
  return open(url, modernRequest(method, params, options));
}

export interface LegacyOptions {
  version?: string;
  capabilities?: Record<string, unknown>;
  clientInfo?: Record<string, unknown>;
  headers?: Record<string, string | undefined>;
  /** False: stop after `initialize`. */
  initialized?: boolean;
}

export interface LegacyRequestOptions {
  id?: unknown;
  headers?: Record<string, string | undefined>;
  signal?: AbortSignal;
}

/** A legacy session by hand. */
export interface LegacySession {
  readonly url: string;
  readonly id: string | undefined;
  /** The answer to `initialize`. */
  readonly initialize: RawResponse;
  /** The answer to `notifications/initialized`; undefined if that was not sent. */
  readonly initialized: RawResponse | undefined;
  /** Session and version headers, as every later request carries them. */
  readonly headers: Record<string, string | undefined>;
  request(method: string, params?: Loose, options?: LegacyRequestOptions): Promise<RawResponse>;
  /** As `request`, but gives the stream. */
  open(method: string, params?: Loose, options?: LegacyRequestOptions): Promise<RawStream>;
  notify(method: string, params?: Loose): Promise<RawResponse>;
  /** Posts any body: a response to a server request, a batch; strings and buffers as they are. */
  post(body: unknown, headers?: Record<string, string | undefined>): Promise<RawResponse>;
  /** The session's GET stream. */
  listen(headers?: Record<string, string | undefined>): Promise<RawStream>;
  delete(): Promise<RawResponse>;
}

/** Handshakes: `initialize`, then `notifications/initialized` if the first went well. */
export async function legacy(url: string, options: LegacyOptions = {}): Promise<LegacySession> {
  const params = {
    protocolVersion: options.version ?? LEGACY,
    capabilities: options.capabilities ?? {},
    clientInfo: options.clientInfo ?? CLIENT_INFO,
  };
  const initialize = await send(url, {
    headers: options.headers ?? {},
    body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
  });
  const id = initialize.headers['mcp-session-id'];
  const headers: Record<string, string | undefined> = {
    ...options.headers,
    'mcp-session-id': typeof id === 'string' ? id : undefined,
    'mcp-protocol-version': initialize.json?.result?.protocolVersion,
  };
  const post = (body: unknown, more: Record<string, string | undefined> = {}) =>
    send(url, {
      headers: { ...headers, ...more },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : rawStringify(body),
    });
  const build = (method: string, params: Loose, given: LegacyRequestOptions): RawRequest => ({
    headers: { ...headers, ...given.headers },
    body: rawStringify({ jsonrpc: '2.0', id: 'id' in given ? given.id : nextId++, method, params }),
    ...(given.signal ? { signal: given.signal } : {}),
  });
  const session: LegacySession = {
    url,
    id: headers['mcp-session-id'],
    initialize,
    initialized:
      options.initialized !== false && initialize.json?.result
        ? await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
        : undefined,
    headers,
    request: (method, params, given = {}) => send(url, build(method, params, given)),
    open: (method, params, given = {}) => open(url, build(method, params, given)),
    notify: (method, params) => post({ jsonrpc: '2.0', method, params }),
    post,
    listen: (more = {}) => open(url, { headers: { ...headers, accept: 'text/event-stream', ...more } }),
    delete: () => send(url, { method: 'DELETE', headers }),
  };
  return session;
}
