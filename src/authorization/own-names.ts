import { isIP } from 'node:net';

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** Special-use names (RFC 6761, 6762, 8375), and those that private networks and clusters use. */
const PRIVATE_ENDING = /\.(local|localhost|internal|lan|home\.arpa|svc|intranet)$/;
const PRIVATE_ADDRESS = /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|\[f[cde][0-9a-f]{2}:)/;

/** Whether a host name or address means anything only within a private network. */
function isPrivate(hostname: string): boolean {
  if (hostname.startsWith('[') || isIP(hostname) !== 0) return PRIVATE_ADDRESS.test(hostname);
  return !hostname.includes('.') || PRIVATE_ENDING.test(hostname);
}

/**
 * The names of a backend: that of its URL, and those that a server behind a gateway may have in its own configuration,
 * from its container, its cluster or the loopback address.
 */
export class OwnNames {
  readonly #endpoint: URL;
  readonly #hosts: ReadonlySet<string>;

  /** @param hostHeader sent to the backend instead of the host of the endpoint */
  constructor(endpoint: URL, hostHeader: string | undefined) {
    this.#endpoint = endpoint;
    this.#hosts = new Set([endpoint.host, hostHeader?.toLowerCase() ?? endpoint.host]);
  }

  /** Whether a URL is certainly the backend's: it has the same host, or both are loopback names. */
  has({ protocol, host, hostname, port }: URL): boolean {
    if (protocol !== 'http:' && protocol !== 'https:') return false;
    if (this.#hosts.has(host)) return true;
    return port === this.#endpoint.port && LOOPBACK.test(hostname) && LOOPBACK.test(this.#endpoint.hostname);
  }

  /** Whether a URL may be the backend's: clients outside of a private network could not reach it. */
  mayHave(url: URL): boolean {
    if (this.has(url)) return true;
    const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
    return isWeb && !LOOPBACK.test(url.hostname) && isPrivate(url.hostname);
  }
}
