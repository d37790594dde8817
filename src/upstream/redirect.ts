import type { Dispatcher } from 'undici';
import { TransportError } from './errors.js';
import type { HttpTarget } from './http-target.js';

const MAX_REDIRECTS = 3;

/**
 * Resolves a redirect that keeps method and body (RFC 9110, sections 15.4.8 and 15.4.9). Another origin is refused:
 * the request carries credentials.
 *
 * @param count of redirects so far, this one included
 * @returns the new path and query, or a TransportError `unusable`
 */
export function resolveRedirect(
  target: HttpTarget,
  { method, path }: Dispatcher.DispatchOptions,
  status: number,
  location: string | string[] | undefined,
  count: number,
): string | TransportError {
  const refuse = (what: string): TransportError =>
    new TransportError(
      'unusable',
      `backend answered ${status} ${what}; set the final address as backend.url`,
    );
  // A GET stays a GET whatever the kind of redirect.
  if (status !== 307 && status !== 308 && method !== 'GET') return refuse('which does not keep the request');
  if (typeof location !== 'string') return refuse('without a Location');
  if (count > MAX_REDIRECTS) return refuse('too many times');
  let url: URL;
  try {
    url = new URL(location, target.origin + path);
  } catch {
    return refuse('with an unreadable Location');
  }
  if (url.origin !== target.origin) return refuse(`to another origin, ${url.origin}`);
  return url.pathname + url.search;
}
