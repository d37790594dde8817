import type { Loose } from './net.js';
import { open, type RawRequest, type RawResponse, type RawStream, send } from './raw-http.js';

export * from './raw-http.js';

export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';
export const CLIENT_INFO = { name: 'ExampleClient', version: '1.0.0' };

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
