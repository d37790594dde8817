import type { Dispatcher } from 'undici';
import { TransportError } from './errors.js';
import type { HttpTarget } from './http-target.js';

const MAX_REDIRECTS = 3;

/** A redirect is followed with method and body kept (307, 308), and never to another origin: credentials go along. */
export function resolveRedirect(
  target: HttpTarget,
  { method, path }: Dispatcher.DispatchOptions,
  status: number,
  location: string | string[] | undefined,
  count: number,
): string | TransportError {
  const problem = (what: string): TransportError =>
    new TransportError(
      'unusable',
      `backend answered ${status} ${what}; set the final address as backend.url`,
    );
  // A GET stays one whatever the kind of redirect.
  if (status !== 307 && status !== 308 && method !== 'GET') return problem('which does not keep the request');
  if (typeof location !== 'string') return problem('without a Location');
  if (count > MAX_REDIRECTS) return problem('too many times');
  let url: URL;
  try {
    url = new URL(location, target.origin + path);
  } catch {
    return problem('with an unreadable Location');
  }
  if (url.origin !== target.origin) return problem(`to another origin, ${url.origin}`);
  return url.pathname + url.search;
}
