const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '::1']);

export function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.has(host) || /^127\.\d+\.\d+\.\d+$/.test(host) || host.endsWith('.localhost');
}

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
 * Who may be asked for and from where: the guard against pages that reach the gateway through a visitor's browser
 * (basic/transports, "Security Warning"). A request without `Origin` comes from no page. Pages of this machine and of
 * the public URL may call; all others must be allowed. `Host` is checked on a loopback listener, which strangers can
 * reach by rebinding their own name to it.
 */
export class RequestGuard {
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: ReadonlySet<string>;
  readonly #checkHost: boolean;
  /** The last one that was allowed: one client asks for the same again and again. */
  #lastHost: string | undefined;

  constructor(options: GuardOptions) {
    const publicUrl = options.publicUrl === undefined ? undefined : new URL(options.publicUrl);
    this.#origins = new Set([
      ...options.allowedOrigins,
      ...(publicUrl === undefined ? [] : [publicUrl.origin]),
    ]);
    this.#hosts = new Set([...options.allowedHosts, ...(publicUrl === undefined ? [] : [publicUrl.host])]);
    this.#checkHost = isLoopbackName(options.host);
  }

  /** @returns what is wrong with the request; undefined when it may pass */
  refuse(origin: string | undefined, host: string | undefined): string | undefined {
    if (origin !== undefined && !this.allowsOrigin(origin)) {
      return `Origin ${origin.slice(0, 100)} is not allowed; see listen.allowedOrigins`;
    }
    if (this.#checkHost && !this.#allowsHost(host)) {
      return `Host ${(host ?? '(none)').slice(0, 100)} is not allowed; see listen.allowedHosts`;
    }
    return undefined;
  }

  allowsOrigin(origin: string): boolean {
    if (this.#origins.has(origin.toLowerCase())) return true;
    if (!URL.canParse(origin)) return false;
    const { protocol, hostname } = new URL(origin);
    return (protocol === 'http:' || protocol === 'https:') && isLoopbackName(hostname);
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
