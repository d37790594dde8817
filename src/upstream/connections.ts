import { buildConnector, Client } from 'undici';

/** Keep-alive of an idle connection; shorter than that of common servers (5 s and up), which may close it meanwhile. */
const KEEP_ALIVE_MS = 4_000;
/** After this long an idle connection has lost its socket, and is dropped. */
const DROP_AFTER_MS = 2 * KEEP_ALIVE_MS;

/** Limit of all headers of a response together; generous, since the request has been carried out by then. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Serves one request at a time; its socket is reused by the next one. */
export interface Connection {
  readonly client: Client;
  /** Number of times that a connection had been found dead when this one was opened. */
  readonly generation: number;
  /** On the monotonic clock. */
  releasedAt: number;
}

/**
 * The connections to one origin, each with one request at a time. The one released last is the next to be acquired, in
 * one step however many are in use. undici's Pool searches all busy connections twice per request, and thousands of
 * them may be streams.
 */
export class Connections {
  readonly #open: () => Client;
  readonly #all = new Set<Client>();
  /** Sorted by the time of release, the latest last. */
  #idle: Connection[] = [];
  #generation = 0;

  /** @param connectMs longest time for making a connection, in milliseconds */
  constructor(origin: string, connectMs: number) {
    // Shared by all clients, since it caches the TLS sessions.
    const connect = buildConnector({ timeout: connectMs });
    this.#open = () =>
      new Client(origin, {
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE_MS,
        // Servers may announce more, but a load balancer in between may close the connection earlier.
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
        connect,
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: 0,
        bodyTimeout: 0,
      });
  }

  /** A connection for one request; the caller releases it after the response, or discards it after a failure. */
  acquire(): Connection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const client = this.#open();
    this.#all.add(client);
    return { client, generation: this.#generation, releasedAt: 0 };
  }

  release(connection: Connection): void {
    if (connection.generation !== this.#generation) {
      this.discard(connection);
      return;
    }
    const now = performance.now();
    connection.releasedAt = now;
    this.#idle.push(connection);
    const longest = this.#idle[0] as Connection;
    if (now - longest.releasedAt > DROP_AFTER_MS) this.discard(this.#idle.shift() as Connection);
  }

  /** Closes a connection whose request failed: undici reports the failure before it has cleaned up. */
  discard({ client }: Connection): void {
    this.#all.delete(client);
    client.close().catch(() => {});
  }

  /**
   * Discards the idle connections after one was found dead. A load balancer that dropped one, or a server that was
   * restarted, has closed them all. Requests in flight are not affected.
   */
  discardIdle({ generation }: Connection): void {
    if (generation !== this.#generation) return;
    this.#generation++;
    for (const idle of this.#idle) this.discard(idle);
    this.#idle = [];
  }

  /** Ends every connection, also those in use. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((client) => client.destroy()));
  }
}
