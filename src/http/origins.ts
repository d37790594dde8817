import { forbidden, HOST_MISSING, type Refusal, UNSUPPORTED_EXPECTATION } from './errors.js';
import type { ParsedRequest, Stage } from './pipeline.js';

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '::1']);

export function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.has(host) || /^127\.\d+\.\d+\.\d+$/.test(host) || host.endsWith('.localhost');
}

/** Balancers and orchestrators ask them by address; they tell nothing of a client. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

export interface GuardOptions {
  /** Address that the gateway listens on. */
  readonly host: string;
  readonly publicUrl: string | undefined;
  /** Lower-case `host` or `host:port`. */
  readonly allowedHosts: readonly string[];
  /** Serialized origins, or `null`. */
  readonly allowedOrigins: readonly string[];
}

/**
 * The first stage of the pipeline: checks the headers that say from where and for whom a request is. It refuses web pages
 * that reach the gateway through a visitor's browser (basic/transports, "Security Warning"). A request without `Origin`
 * is of no page. Pages of this machine and of the public URL may call, others must be allowed. `Host` is checked where
 * hosts are configured, and where the gateway listens on a loopback address, which a page can reach by rebinding its own name
 * to it.
 */
export class RequestGuard implements Stage {
  readonly #origins: ReadonlySet<string>;
  /** What follows the * of allowed origins, with the scheme. */
  readonly #wildcards: readonly { readonly scheme: string; readonly suffix: string }[];
  readonly #hosts: ReadonlySet<string>;
  readonly #checksHost: boolean;
  /** No page reaches the gateway by rebinding there, and what asks for its health knows its address alone. */
  readonly #exemptsHealth: boolean;
  /** The last one that was allowed: a client sends the same with every request. */
  #lastHost: string | undefined;

  constructor(options: GuardOptions) {
    const publicUrl = options.publicUrl === undefined ? undefined : new URL(options.publicUrl);
    this.#origins = new Set([
      ...options.allowedOrigins,
      ...(publicUrl === undefined ? [] : [publicUrl.origin]),
    ]);
    this.#hosts = new Set([...options.allowedHosts, ...(publicUrl === undefined ? [] : [publicUrl.host])]);
    this.#wildcards = options.allowedOrigins.flatMap((origin) => {
      const [scheme = '', suffix] = origin.split('*');
      return suffix === undefined ? [] : [{ scheme, suffix }];
    });
    this.#exemptsHealth = !isLoopbackName(options.host);
    this.#checksHost = isLoopbackName(options.host) || options.allowedHosts.length > 0;
  }

  admit({ message, path }: ParsedRequest): Refusal | undefined {
    const { origin, host, expect } = message.headers;
    if (host === undefined && message.httpVersion === '1.1') return HOST_MISSING;
    if (origin !== undefined && !this.allowsOrigin(origin))
      return forbidden('Origin', origin, 'listen.allowedOrigins');
    if (this.#checksHost && !this.#allowsHost(host) && !(this.#exemptsHealth && HEALTH_PATHS.has(path ?? '')))
      return forbidden('Host', host ?? '(none)', 'listen.allowedHosts');
    if (expect !== undefined && expect.toLowerCase() !== '100-continue') return UNSUPPORTED_EXPECTATION;
    return undefined;
  }

  allowsOrigin(origin: string): boolean {
    const lower = origin.toLowerCase();
    if (this.#origins.has(lower) || this.#matchesWildcard(lower)) return true;
    if (!URL.canParse(origin)) return false;
    const { protocol, hostname } = new URL(origin);
    return (protocol === 'http:' || protocol === 'https:') && isLoopbackName(hostname);
  }

  #matchesWildcard(origin: string): boolean {
    return this.#wildcards.some(
      ({ scheme, suffix }) =>
        origin.startsWith(scheme) &&
        origin.endsWith(suffix) &&
        /^[^/.*]+(\.[^/.*]+)*$/.test(origin.slice(scheme.length, origin.length - suffix.length)),
    );
  }

  #allowsHost(host: string | undefined): boolean {
    if (host === undefined) return false;
    if (host === this.#lastHost) return true;
    const allowed = this.#isAllowedHost(host);
    if (allowed) this.#lastHost = host;
    return allowed;
  }

  #isAllowedHost(host: string): boolean {
    const lower = host.toLowerCase();
    const name = lower.replace(/:\d+$/, '');
    return isLoopbackName(name) || this.#hosts.has(lower) || this.#hosts.has(name);
  }
}
