import { isIP } from 'node:net';

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** Special-use names (RFC 6762, 6761, 8375), and those that private networks and clusters have come to use. */
const PRIVATE_ENDING = /\.(local|localhost|internal|lan|home\.arpa|svc|intranet)$/;
const PRIVATE_ADDRESS = /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|\[f[cde][0-9a-f]{2}:)/;

/** Whether a host has its name from a private network: who is on another one can do nothing with it. */
function isPrivate(hostname: string): boolean {
  if (hostname.startsWith('[') || isIP(hostname) !== 0) return PRIVATE_ADDRESS.test(hostname);
  return !hostname.includes('.') || PRIVATE_ENDING.test(hostname);
}

/**
 * The names that a backend goes by: the one that it is called by, and those that a server behind a gateway believes to
 * have, since it has been told of a container, a cluster or the loopback address.
 */
export class OwnNames {
  readonly #endpoint: URL;
  readonly #hosts: ReadonlySet<string>;

  /** @param hostHeader that is sent to the backend in place of the endpoint's own */
  constructor(endpoint: URL, hostHeader: string | undefined) {
    this.#endpoint = endpoint;
    this.#hosts = new Set([endpoint.host, hostHeader?.toLowerCase() ?? endpoint.host]);
  }

  /** Whether a URL certainly stands for the backend: its own host, also by another name for this machine. */
  has({ protocol, host, hostname, port }: URL): boolean {
    if (protocol !== 'http:' && protocol !== 'https:') return false;
    if (this.#hosts.has(host)) return true;
    return port === this.#endpoint.port && LOOPBACK.test(hostname) && LOOPBACK.test(this.#endpoint.hostname);
  }

  /** Whether it stands for the backend or for what nobody outside of a private network could reach. */
  mayHave(url: URL): boolean {
    if (this.has(url)) return true;
    const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
    return isWeb && !LOOPBACK.test(url.hostname) && isPrivate(url.hostname);
  }
}
