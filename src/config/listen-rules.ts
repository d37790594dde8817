/** Rules for the address that the gateway listens on, and for what it would mean for a route. */

import { isIP } from 'node:net';
import type { ConfigDocument } from './document.js';
import { type Segment, valueAt } from './problems.js';

/** Addresses that cannot be reached from another machine. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/i;

/** Accepts what can be listened on: the error of the system for anything else only says that it is not found. */
export function checkHost(document: ConfigDocument): void {
  const segments: Segment[] = ['listen', 'host'];
  const host = valueAt(document.data, segments);
  if (typeof host !== 'string' || host === '' || isIP(host) !== 0 || /^[\w-]+(\.[\w-]+)*$/.test(host)) return;
  document.report(
    segments,
    'an address or a host name such as 127.0.0.1, ::1 or localhost, without brackets and port',
  );
}

/** As in the schema. */
const ADDRESS_FORM = /^[0-9A-Fa-f:.]+(\/\d{1,3})?$/;

/** Rejects what has the form of an address or range and is none, such as 10.0.0.300 or ::1/200. */
export function checkTrustedProxies(document: ConfigDocument): void {
  const segments: Segment[] = ['listen', 'trustedProxies'];
  const proxies = valueAt(document.data, segments);
  if (!Array.isArray(proxies)) return;
  for (const [index, proxy] of proxies.entries()) {
    // The schema has reported anything of another form.
    if (typeof proxy !== 'string' || !ADDRESS_FORM.test(proxy) || isAddressOrRange(proxy)) continue;
    document.report([...segments, index], 'an address or a range such as 10.0.0.0/8 or fd00::/8');
  }
}

function isAddressOrRange(text: string): boolean {
  const [address = '', prefix] = text.split('/');
  const family = isIP(address);
  if (family === 0) return false;
  return prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128);
}

/** Rejects a * that matches nothing: it can stand for the first labels of a host alone. */
export function checkOrigins(document: ConfigDocument): void {
  const segments: Segment[] = ['listen', 'allowedOrigins'];
  const origins = valueAt(document.data, segments);
  if (!Array.isArray(origins)) return;
  for (const [index, origin] of origins.entries()) {
    if (typeof origin !== 'string' || !origin.includes('*') || document.isReported([...segments, index]))
      continue;
    if (/^[a-z][a-z0-9+.-]*:\/\/\*\.[^*]+$/i.test(origin)) continue;
    document.report(
      [...segments, index],
      'an origin, where * may stand for the first labels alone (https://*.example.com)',
    );
  }
}

/** Warns of a public URL that ends with the path of a route: that path is added to it. */
export function warnOfPublicPath(document: ConfigDocument, route: number): void {
  const publicUrl = valueAt(document.data, ['publicUrl']);
  const path = valueAt(document.data, ['routes', route, 'path']);
  if (typeof publicUrl !== 'string' || typeof path !== 'string' || !URL.canParse(publicUrl)) return;
  const own = withoutSlash(path);
  const base = withoutSlash(new URL(publicUrl).pathname);
  if (own === '' || !base.endsWith(own)) return;
  document.warn(
    ['publicUrl'],
    `the path of a route is added to it, so that clients would call ${base}${own}; leave out ${own} unless that is meant`,
  );
}

/** Warns of a server on stdio that other machines can reach: it gets no credentials that it could check. */
export function warnOfOpenServer(document: ConfigDocument, command: readonly Segment[]): void {
  const host = valueAt(document.data, ['listen', 'host']);
  if (!document.isWritten(command) || LOOPBACK.test(String(host))) return;
  document.warn(
    command,
    'any client that can connect to the gateway can use this server, with the rights of the gateway: set listen.host ' +
      'to 127.0.0.1, or restrict who can connect (with a proxy in front, or the network of a container)',
  );
}

/** Rejects a route whose backend is the route itself, since each request would cause another without end. */
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

/** Hosts in URLs that certainly lead to the address listened on; other addresses of this machine may be another server's. */
function namesOf(host: string): RegExp {
  if (host === '0.0.0.0') return /^(localhost|127(\.\d+){3}|0\.0\.0\.0)$/;
  if (host === '::') return /^(localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/;
  if (host === '::1') return /^(localhost|\[::1\])$/;
  return host === 'localhost' || host === '127.0.0.1' ? /^(localhost|127\.0\.0\.1)$/ : /^$/;
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, '');
}
