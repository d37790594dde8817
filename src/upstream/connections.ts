import { buildConnector, Client } from 'undici';

/**
 * How long a connection waits for another request: less than common servers wait before they close it (5 s and up), so
 * that a request seldom meets one that is being closed.
 */
const KEEP_ALIVE_MS = 4_000;
/** What has been of no use for so long holds no socket any more. */
const FORGOTTEN_AFTER_MS = 2 * KEEP_ALIVE_MS;

/** Of all headers of an answer; whoever is refused for them has been called all the same. */
const MAX_HEADER_BYTES = 64 * 1024;

/** A place for one request at a time, with a socket that outlives it. */
export interface Connection {
  readonly client: Client;
  /** Of those who were opened since the last of their kind was found dead. */
  readonly generation: number;
  givenBackAt: number;
}

/**
 * The connections to one origin, each with one request at a time. The one that was given back last is the next to be
 * taken, in one step however many are in use: undici's pool looks through those that are busy, twice for each request, and there
 * may be thousands of streams among them.
 */
export class Connections {
  readonly #open: () => Client;
  readonly #all = new Set<Client>();
  /** The one that was used last stands last. */
  #idle: Connection[] = [];
  #generation = 0;

  /** @param connectMs longest time for making a connection, in milliseconds */
  constructor(origin: string, connectMs: number) {
    // One for all, since it remembers the TLS sessions.
    const connect = buildConnector({ timeout: connectMs });
    this.#open = () =>
      new Client(origin, {
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE_MS,
        // Servers ask for longer; what lies between, a balancer say, may not keep the connection for so long.
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
        connect,
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: 0,
        bodyTimeout: 0,
      });
  }

  /** A connection for one request; to be given back when that is over, or to be discarded if it failed. */
  take(): Connection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const client = this.#open();
    this.#all.add(client);
    return { client, generation: this.#generation, givenBackAt: 0 };
  }

  giveBack(connection: Connection): void {
    if (connection.generation !== this.#generation) {
      this.discard(connection);
      return;
    }
    const now = performance.now();
    connection.givenBackAt = now;
    this.#idle.push(connection);
    const longest = this.#idle[0] as Connection;
    if (now - longest.givenBackAt > FORGOTTEN_AFTER_MS) this.discard(this.#idle.shift() as Connection);
  }

  /** What has failed is not used again: undici is not done with it when it tells so. */
  discard({ client }: Connection): void {
    this.#all.delete(client);
    client.close().catch(() => {});
  }

  /**
   * A request found its connection dead. The others waited beside it and are as dead, when a balancer dropped them or the
   * server was restarted: what is sent from now on goes over new ones. What is under way stays.
   */
  retire({ generation }: Connection): void {
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
