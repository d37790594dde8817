import { Pool } from 'undici';

/**
 * How long a connection waits for another request: less than common servers wait before they close it (5 s and up), so
 * that a request seldom meets one that is being closed.
 */
const KEEP_ALIVE_MS = 4_000;

/**
 * The connections to one origin. Streams that last have a pool to themselves: a pool looks through its busy connections
 * for each request, and there may be thousands of those.
 */
export class Connections {
  readonly #origin: string;
  readonly #connectMs: number;
  readonly #retired = new Set<Pool>();
  #requests: Pool;
  #streams: Pool;

  /** @param connectMs longest time for making a connection, in milliseconds */
  constructor(origin: string, connectMs: number) {
    this.#origin = origin;
    this.#connectMs = connectMs;
    this.#requests = this.#open();
    this.#streams = this.#open();
  }

  /** Where to send a request now. */
  poolFor(method: string): Pool {
    return method === 'GET' ? this.#streams : this.#requests;
  }

  /**
   * A request found one of the pool's connections dead. The others waited beside it and are as dead, when a balancer
   * dropped them or the server was restarted: what is sent from now on goes over new ones. What is under way stays.
   */
  replace(pool: Pool): void {
    if (pool === this.#requests) this.#requests = this.#open();
    else if (pool === this.#streams) this.#streams = this.#open();
    else return;
    this.#retired.add(pool);
    pool.close().then(
      () => this.#retired.delete(pool),
      () => {},
    );
  }

  /** Ends every connection, also those in use. */
  async destroy(): Promise<void> {
    await Promise.all([this.#requests, this.#streams, ...this.#retired].map((pool) => pool.destroy()));
  }

  #open(): Pool {
    return new Pool(this.#origin, {
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Servers ask for longer; what lies between, a balancer say, may not keep the connection for so long.
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      connect: { timeout: this.#connectMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }
}
