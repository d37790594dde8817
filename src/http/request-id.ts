import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TrustedProxies } from './trusted-proxies.js';

export const REQUEST_ID_HEADER = 'x-request-id';

/** Printable ASCII, so that an id can be put into a header and a log line as it is. */
const VALID_ID = /^[\x20-\x7e]{1,128}$/;

/** What the id of a request depends on. */
type Identified = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** Gives each request the id under which the log has it and the client knows it. */
export class RequestIds {
  readonly #trusted: TrustedProxies;
  /** Distinguishes the ids of this process from those of others. */
  readonly #prefix = `${randomBytes(5).toString('hex')}-`;
  #count = 0;

  constructor(trusted: TrustedProxies) {
    this.#trusted = trusted;
  }

  /** The id that a trusted proxy gave the request, or a new one. */
  of({ headers, socket }: Identified): string {
    const given = headers[REQUEST_ID_HEADER];
    if (typeof given !== 'string' || !VALID_ID.test(given)) return this.create();
    return this.#trusted.includes(socket.remoteAddress) ? given : this.create();
  }

  create(): string {
    this.#count += 1;
    return this.#prefix + this.#count.toString(36);
  }
}
