import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export { freePort } from './free-port.mjs';

/** A value of JSON whose shape the test at hand knows. */
// biome-ignore lint/suspicious/noExplicitAny: tests reach deep into JSON, and a wrong guess fails the assertion anyway
export type Loose = any;

/** One HTTP request as a backend received it. `body` grows while the request is still being read. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** As node gives them: names in lower case, duplicates joined. */
  readonly headers: IncomingHttpHeaders;
  /** As they came: name, value, name, value … in their own case, with duplicates. */
  readonly rawHeaders: readonly string[];
  /** Milliseconds since the epoch at which the head was read. */
  readonly at: number;
  readonly body: Buffer;
  readonly text: string;
  /** The body parsed, or undefined when it is empty or not JSON. */
  readonly json: Loose;
  /** True once the client's connection for this exchange went away before the answer was finished. */
  readonly disconnected: boolean;
}

/**
 * Records a request as it passes, without touching its flow: every byte can still be read from `request`.
 */
export function recordRequest(request: IncomingMessage, response: ServerResponse): ReceivedRequest {
  const chunks: Buffer[] = [];
  let disconnected = false;
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk) chunks.push(Buffer.from(chunk as Buffer));
    return push(chunk, encoding);
  };
  response.on('close', () => {
    if (!response.writableFinished) disconnected = true;
  });
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    at: Date.now(),
    get body() {
      return Buffer.concat(chunks);
    },
    get text() {
      return this.body.toString('utf8');
    },
    get json() {
      try {
        return JSON.parse(this.text);
      } catch {
        return undefined;
      }
    },
    get disconnected() {
      return disconnected;
    },
  };
}

/** A loopback HTTP server that can go away and come back on the same port. */
export interface Host {
  readonly port: number;
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Ends every connection and stops listening; the port stays reserved for `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Listens on 127.0.0.1, on a port of the system's choice unless one is given. */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  port = 0,
): Promise<Host> {
  let server: Server | undefined;
  const host = {
    port,
    get origin() {
      return `http://127.0.0.1:${host.port}`;
    },
    async start() {
      const fresh = createServer({ keepAliveTimeout: 60_000 }, handler);
      await new Promise<void>((resolve, reject) => {
        fresh.once('error', reject);
        fresh.listen(host.port, '127.0.0.1', resolve);
      });
      host.port = (fresh.address() as AddressInfo).port;
      server = fresh;
    },
    async stop() {
      const old = server;
      server = undefined;
      if (!old) return;
      const closed = new Promise((resolve) => old.close(resolve));
      old.closeAllConnections();
      await closed;
    },
  };
  await host.start();
  return host;
}

/** Resolves after `ms` milliseconds. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Polls `condition` until it gives something truthy, and returns that.
 * @throws Error naming `what` after `timeoutMs` (default 5000).
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what = 'condition',
  timeoutMs = 5_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await sleep(10);
  }
}
