import { type Cookie, getSetCookies, Headers } from 'undici';
import type { ResponseHeaders } from './response-headers.js';

/** What browsers keep per server; more would bloat the headers of every request. */
const MAX_COOKIES = 50;

/** The cookies of one session. Load balancers in front of a backend route a session by its cookies. */
export class CookieJar {
  readonly #cookies = new Map<string, string>();

  /** @param header value of a `Cookie` header to begin with */
  constructor(header?: string) {
    for (const pair of header?.split('; ') ?? []) {
      const [name, value] = pair.split(/=(.*)/s, 2) as [string, string];
      this.#cookies.set(name, value);
    }
  }

  /** Stores the cookies that a response sets. */
  keep(headers: ResponseHeaders): void {
    const raw = headers['set-cookie'];
    if (raw === undefined) return;
    const carrier = new Headers();
    for (const line of Array.isArray(raw) ? raw : [raw]) carrier.append('set-cookie', line);
    // Unlike its types, it returns null for a cookie that is malformed or too long.
    for (const cookie of getSetCookies(carrier) as (Cookie | null)[]) {
      if (cookie === null || cookie.name === '') continue;
      const { name, value, maxAge, expires } = cookie;
      // Max-Age wins over Expires (RFC 6265, section 5.3).
      const expired = maxAge === undefined ? Number(expires ?? Infinity) <= Date.now() : maxAge <= 0;
      this.#cookies.delete(name);
      if (!expired) this.#cookies.set(name, value);
    }
    for (const oldest of this.#cookies.keys()) {
      if (this.#cookies.size <= MAX_COOKIES) break;
      this.#cookies.delete(oldest);
    }
  }

  /** Value of the `Cookie` header; undefined without any cookie. */
  get header(): string | undefined {
    if (this.#cookies.size === 0) return undefined;
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }
}
