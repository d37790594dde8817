import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { createParser } from 'eventsource-parser';
import type { Loose } from './net.js';

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
  /** The events of a `text/event-stream` body, else empty; those that carry an id alone are not among them. */
  readonly events: readonly RawEvent[];
  /** The notifications and server requests among the events. */
  readonly messages: readonly Loose[];
}

/** An answer that is still being received. */
export interface RawStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Events with data so far; grows. */
  readonly events: readonly RawEvent[];
  /** Ids of the events without data so far; grows. */
  readonly primings: readonly string[];
  /** The pause before coming back that the stream asked for last, in milliseconds. */
  readonly retryMs: number | undefined;
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
  const primings: string[] = [];
  let retryMs: number | undefined;
  let taken = 0;
  let ended = false;
  const wakers = new Set<() => void>();
  const wake = () => {
    for (const waker of wakers) waker();
  };
  const streaming = String(response.headers['content-type'] ?? '').startsWith('text/event-stream');
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent: ({ event, id, data }) => {
      if (data === '' && id !== undefined) primings.push(id);
      else events.push({ event, id, data, json: parse(data) });
    },
    onRetry: (ms) => {
      retryMs = ms;
    },
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
    primings,
    get retryMs() {
      return retryMs;
    },
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
