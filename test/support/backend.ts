import type { ServerResponse } from 'node:http';
import { listen, type ReceivedRequest, recordRequest } from './net.js';
import { rawStringify } from './raw.js';

/** A request whose body has been read, and the means to answer it in any way. */
export interface BackendExchange extends ReceivedRequest {
  readonly res: ServerResponse;
  /** Answers with JSON; strings and buffers go out as they are, `RawJson` members as written. */
  sendJson(body: unknown, status?: number, headers?: Record<string, string>): void;
  /** Answers with anything else: plain text unless `headers` say otherwise. */
  sendText(body: string, status?: number, headers?: Record<string, string>): void;
  /** Begins a `text/event-stream` answer. */
  stream(headers?: Record<string, string>, status?: number): BackendStream;
  /** Breaks the connection. */
  destroy(): void;
}

/** An SSE answer of a backend. */
export interface BackendStream {
  /** One event; strings go out as they are, anything else as JSON (`RawJson` members as written). */
  event(data: unknown, fields?: { id?: string; event?: string; retry?: number }): void;
  /** Any bytes, e.g. half an event. */
  write(bytes: string | Buffer): void;
  comment(text: string): void;
  end(): void;
  /** Breaks the connection without ending the answer. */
  destroy(): void;
  /** True once either side has ended it. */
  readonly closed: boolean;
}

export interface Backend {
  /** The MCP endpoint, `http://127.0.0.1:<port>/mcp`; every path is served alike. */
  readonly url: string;
  readonly port: number;
  /** Every request received, in order. */
  readonly requests: ReceivedRequest[];
  /** The requests whose JSON body has this method, in order. */
  received(method: string): ReceivedRequest[];
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

const asText = (value: unknown) =>
  typeof value === 'string' || Buffer.isBuffer(value) ? value : rawStringify(value);

function streamOver(res: ServerResponse): BackendStream {
  return {
    event(data, fields = {}) {
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
      res.write(`${lines.join('')}data: ${asText(data)}\n\n`);
    },
    write: (bytes) => void res.write(bytes),
    comment: (text) => void res.write(`: ${text}\n\n`),
    end: () => void res.end(),
    destroy: () => void res.destroy(),
    get closed() {
      return res.writableEnded || res.destroyed;
    },
  };
}

function exchangeOf(record: ReceivedRequest, res: ServerResponse): BackendExchange {
  const answers = {
    res,
    sendJson(body: unknown, status = 200, headers: Record<string, string> = {}) {
      res.writeHead(status, { 'content-type': 'application/json', ...headers });
      res.end(asText(body));
    },
    sendText(body: string, status = 200, headers: Record<string, string> = {}) {
      res.writeHead(status, { 'content-type': 'text/plain', ...headers });
      res.end(body);
    },
    stream(headers: Record<string, string> = {}, status = 200) {
      res.writeHead(status, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers });
      res.flushHeaders();
      return streamOver(res);
    },
    destroy: () => void res.destroy(),
  };
  return Object.defineProperties(
    answers,
    Object.getOwnPropertyDescriptors(record),
  ) as unknown as BackendExchange;
}

/** Starts a backend that answers each request as `handler` says. A handler that throws breaks the connection. */
export async function startBackend(
  handler: (exchange: BackendExchange) => void | Promise<void>,
): Promise<Backend> {
  const requests: ReceivedRequest[] = [];
  const host = await listen((request, res) => {
    const record = recordRequest(request, res);
    requests.push(record);
    request.resume();
    request.on('end', () => {
      Promise.resolve(exchangeOf(record, res))
        .then(handler)
        .catch(() => res.destroy());
    });
  });
  return {
    url: `${host.origin}/mcp`,
    port: host.port,
    requests,
    received: (method) => requests.filter(({ json }) => json?.method === method),
    stop: () => host.stop(),
    start: () => host.start(),
    close: () => host.stop(),
  };
}
