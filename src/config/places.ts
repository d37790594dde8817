/** Where the gateway listens, what it starts, and where its routes lead: what could never work, or is open to all. */

import { isIP } from 'node:net';
import type { ConfigDocument } from './document.js';
import { type Segment, valueAt } from './problems.js';

/** Addresses that nobody can reach from another machine. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/i;

/** A server on stdio takes no credentials: whoever reaches it may use it. */
export function warnOfOpenServer(document: ConfigDocument, command: readonly Segment[]): void {
  const host = valueAt(document.data, ['listen', 'host']);
  if (!document.isWritten(command) || LOOPBACK.test(String(host))) return;
  document.warn(
    command,
    'everybody who can reach the gateway over the network can use this server, with the rights of the gateway: set ' +
      'listen.host to 127.0.0.1, or let only those through who may (a container or a proxy in front can see to that)',
  );
}

/** No shell takes a line of a shell apart. */
export function checkProgram(document: ConfigDocument, segments: readonly Segment[]): void {
  const program = valueAt(document.data, segments);
  if (typeof program === 'string' && /^[^/\\]*\s/.test(program))
    document.report(segments, 'a program alone; its arguments go into args');
}

/** What the system could listen on: it says of all else no more than that it does not find it. */
export function checkHost(document: ConfigDocument): void {
  const segments: Segment[] = ['listen', 'host'];
  const host = valueAt(document.data, segments);
  if (typeof host !== 'string' || host === '' || isIP(host) !== 0 || /^[\w-]+(\.[\w-]+)*$/.test(host)) return;
  document.report(
    segments,
    'an address or a host name such as 127.0.0.1, ::1 or localhost, without brackets and port',
  );
}

/** A route whose backend is the route itself would ask itself without an end. */
export function checkLoop(document: ConfigDocument, route: number): void {
  const segments: Segment[] = ['routes', route, 'backend', 'url'];
  const text = valueAt(document.data, segments);
  const path = valueAt(document.data, ['routes', route, 'path']);
  const { host, port } = (valueAt(document.data, ['listen']) ?? {}) as { host?: unknown; port?: unknown };
  if (typeof text !== 'string' || typeof path !== 'string' || !URL.canParse(text)) return;
  const { protocol, hostname, port: own, pathname } = new URL(text);
  const isHere = protocol === 'http:' && namesOf(String(host)).test(hostname);
  if (isHere && Number(own || 80) === Number(port) && withoutSlash(pathname) === withoutSlash(path))
    document.report(segments, 'another server: this is the route itself');
}

/** Hosts of URLs that certainly lead to an address that is listened on: others of this machine may be another server's. */
function namesOf(host: string): RegExp {
  if (host === '0.0.0.0') return /^(localhost|127(\.\d+){3}|0\.0\.0\.0)$/;
  if (host === '::') return /^(localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/;
  if (host === '::1') return /^(localhost|\[::1\])$/;
  return host === 'localhost' || host === '127.0.0.1' ? /^(localhost|127\.0\.0\.1)$/ : /^$/;
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, '');
}
