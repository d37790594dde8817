/** Rules for the paths of routes: each has its own, and none is reserved. */

import type { ConfigDocument } from './document.js';
import { pathText, type Segment, valueAt } from './problems.js';

/** Paths that the gateway itself serves, and their use. */
const RESERVED_PATHS: readonly (readonly [RegExp, string])[] = [
  [/^\/healthz\/?$/, 'the health check of the gateway'],
  [/^\/readyz\/?$/, 'the readiness check of the gateway'],
  [/^\/\.well-known(\/|$)/, 'for metadata of the gateway'],
];

export function checkPaths(document: ConfigDocument, count: number): void {
  const taken = new Map<string, Segment[]>();
  for (let i = 0; i < count; i++) {
    const segments: Segment[] = ['routes', i, 'path'];
    const path = valueAt(document.data, segments);
    if (typeof path !== 'string' || document.isReported(segments)) continue;
    const reserved = RESERVED_PATHS.find(([pattern]) => pattern.test(path));
    if (reserved !== undefined) document.report(segments, `another path; this one is ${reserved[1]}`);
    else if (/(^|\/)\.\.?(\/|$)/.test(path))
      document.report(segments, 'a path without . and .. between slashes');
    // HTTP clients and proxies add and remove a slash at the end, so two such paths cannot be told apart.
    const canonical = path.replace(/\/$/, '');
    const first = taken.get(canonical);
    if (first === undefined) taken.set(canonical, segments);
    else
      document.report(segments, `a path of its own for each route; ${pathText(first)} has this one already`);
  }
  for (let i = 0; i < count; i++) checkSsePaths(document, i, taken);
}

/** Rejects a route at one of the two paths that clients on HTTP+SSE need below the path of their route. */
function checkSsePaths(
  document: ConfigDocument,
  route: number,
  taken: ReadonlyMap<string, readonly Segment[]>,
): void {
  const segments: Segment[] = ['routes', route, 'legacySse'];
  const path = valueAt(document.data, ['routes', route, 'path']);
  if (valueAt(document.data, segments) !== true || typeof path !== 'string') return;
  for (const name of ['sse', 'messages']) {
    const other = taken.get(`${path.replace(/\/$/, '')}/${name}`);
    if (other === undefined) continue;
    document.report(segments, `false, since ${pathText(other)} has the path that is needed for it`);
  }
}
