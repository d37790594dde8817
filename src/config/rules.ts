/** What a schema cannot say: URLs, keys that exclude each other, and what is valid but probably not meant. */

import { ownedHeaderReason } from './backend-headers.js';
import type { ConfigDocument } from './document.js';
import { checkHost, checkLoop, checkProgram, warnOfOpenServer } from './places.js';
import { pathText, type Segment, valueAt } from './problems.js';
import { expectedText } from './schema.js';

/** Paths that the gateway answers itself, with what for. */
const RESERVED_PATHS: readonly (readonly [RegExp, string])[] = [
  [/^\/healthz\/?$/, 'where the gateway says that it lives'],
  [/^\/\.well-known(\/|$)/, 'for metadata of the gateway'],
];

/** The values of `era` that pin a backend to the modern era; all others but `auto` pin it to the legacy one. */
const MODERN_ERAS: ReadonlySet<string> = new Set(['modern', '2026-07-28']);

/** Reports what breaks the rules in the parts of `document.data` that are of the right type. */
export function checkRules(document: ConfigDocument): void {
  checkUrl(document, ['publicUrl'], { query: false });
  checkHost(document);
  warnOfMissingSealKeys(document);
  const routes = valueAt(document.data, ['routes']);
  if (!Array.isArray(routes)) return;
  checkPaths(document, routes.length);
  for (let i = 0; i < routes.length; i++) {
    const backend: Segment[] = ['routes', i, 'backend'];
    checkKind(document, backend);
    checkProgram(document, [...backend, 'command']);
    warnOfOpenServer(document, [...backend, 'command']);
    checkUrl(document, [...backend, 'url'], { query: true });
    checkLoop(document, i);
    checkUrl(document, [...backend, 'messagesUrl'], { query: true });
    checkHeaders(document, [...backend, 'headers']);
    checkLeg(document, backend);
    checkTransport(document, backend);
    checkLost(document, ['routes', i, 'sessions', 'lost']);
    checkStream(document, ['routes', i, 'timeouts', 'stream']);
  }
}

/** The keys that say something about one way to reach a server. */
const OF_COMMAND: readonly string[] = ['args', 'env', 'cwd', 'process'];
const OF_URL: readonly string[] = ['transport', 'messagesUrl', 'headers', 'hostHeader', 'authorization'];

/** A server is reached at a URL, or started by a command. */
function checkKind(document: ConfigDocument, backend: readonly Segment[]): void {
  if (!isMapping(valueAt(document.data, backend))) return;
  const has = (key: string): boolean => document.isWritten([...backend, key]);
  const report = (key: string, found: string, expected: string): void =>
    document.report([...backend, key], expected, { found, at: 'key' });
  const url = has('url');
  if (url && has('command')) report('command', 'url and command', 'one of them');
  else if (!url && !has('command')) {
    const expected = `${expectedText([...backend, 'url'])}, or command and args in its place for a server on stdio`;
    report('url', 'nothing', expected);
  } else {
    const [kind, foreign] = url ? (['url', OF_COMMAND] as const) : (['command', OF_URL] as const);
    for (const key of foreign.filter(has)) report(key, `the key ${key} beside ${kind}`, 'no such key there');
  }
}

function isMapping(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every successful call has the status 200, and a tool's own error is none of the session's. */
function checkLost(document: ConfigDocument, segments: readonly Segment[]): void {
  const answers = valueAt(document.data, segments);
  if (!Array.isArray(answers)) return;
  for (let i = 0; i < answers.length; i++) {
    const { status, message } = answers[i] ?? {};
    if (status === 200 && message === undefined) {
      document.report(
        [...segments, i, 'message'],
        'a text to tell the answer from others of the status 200',
        {
          found: 'nothing',
          at: 'key',
        },
      );
    }
  }
}

/** Nobody can come back for what is not kept. */
function checkStream(document: ConfigDocument, segments: readonly Segment[]): void {
  const held = valueAt(document.data, segments);
  const kept = valueAt(document.data, ['limits', 'replay']);
  if (Number(kept) !== 0 || typeof held !== 'string' || held === 'off' || isReported(document, segments))
    return;
  document.report(segments, 'off, since limits.replay is 0 and nothing is kept for clients that come back');
}

function checkUrl(document: ConfigDocument, segments: readonly Segment[], allow: { query: boolean }): void {
  const text = valueAt(document.data, segments);
  if (typeof text !== 'string' || text === '') return;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\//i.test(text)) document.report(segments, expectedText(segments));
  else if (url.username !== '' || url.password !== '') {
    document.report(segments, 'a URL without credentials (send them with backend.headers: Authorization)');
  } else if (url.hash !== '') document.report(segments, 'a URL without a fragment (#…)');
  else if (url.search !== '' && !allow.query) document.report(segments, 'a URL without a query (?…)');
}

function warnOfMissingSealKeys(document: ConfigDocument): void {
  const keys = valueAt(document.data, ['sealKeys']);
  if (!Array.isArray(keys) || keys.length > 0) return;
  document.warn(
    [],
    'no sealKeys: sessions of clients end when the gateway restarts, and replicas cannot serve the sessions of each ' +
      'other (make a key with: openssl rand -base64 32)',
  );
}

function checkPaths(document: ConfigDocument, count: number): void {
  const taken = new Map<string, Segment[]>();
  for (let i = 0; i < count; i++) {
    const segments: Segment[] = ['routes', i, 'path'];
    const path = valueAt(document.data, segments);
    if (typeof path !== 'string' || isReported(document, segments)) continue;
    const reserved = RESERVED_PATHS.find(([pattern]) => pattern.test(path));
    if (reserved !== undefined) document.report(segments, `another path; this one is ${reserved[1]}`);
    else if (/(^|\/)\.\.?(\/|$)/.test(path))
      document.report(segments, 'a path without . and .. between slashes');
    // HTTP clients and proxies add and drop a slash at the end, so that two such paths could not be told apart.
    const canonical = path.replace(/\/$/, '');
    const first = taken.get(canonical);
    if (first === undefined) taken.set(canonical, segments);
    else
      document.report(segments, `a path of its own for each route; ${pathText(first)} has this one already`);
  }
  for (let i = 0; i < count; i++) checkSsePaths(document, i, taken);
}

/** The places for clients on HTTP+SSE are below the path of their route. */
function checkSsePaths(
  document: ConfigDocument,
  route: number,
  taken: ReadonlyMap<string, readonly Segment[]>,
): void {
  const segments: Segment[] = ['routes', route, 'legacySse'];
  const path = valueAt(document.data, ['routes', route, 'path']);
  if (valueAt(document.data, segments) !== true || typeof path !== 'string') return;
  for (const place of ['sse', 'messages']) {
    const other = taken.get(`${path.replace(/\/$/, '')}/${place}`);
    if (other === undefined) continue;
    document.report(segments, `false, since ${pathText(other)} has the path that is needed for it`);
  }
}

function checkHeaders(document: ConfigDocument, segments: readonly Segment[]): void {
  const headers = valueAt(document.data, segments);
  if (typeof headers !== 'object' || headers === null) return;
  const seen = new Map<string, string>();
  for (const name of Object.keys(headers)) {
    const reason = ownedHeaderReason(name);
    if (reason !== undefined) document.warn([...segments, name], `not sent: ${reason}`);
    const first = seen.get(name.toLowerCase());
    if (first === undefined) seen.set(name.toLowerCase(), name);
    else {
      document.report([...segments, name], `each header once; ${first} is the same name`, {
        found: `the header ${name} a second time`,
        at: 'key',
      });
    }
  }
}

/** A pinned era has no other leg. */
function checkLeg(document: ConfigDocument, backend: readonly Segment[]): void {
  const era = valueAt(document.data, [...backend, 'era']);
  const leg = valueAt(document.data, [...backend, 'leg']);
  if (typeof era !== 'string' || era === 'auto' || (leg !== 'legacy' && leg !== 'modern')) return;
  const pinned = MODERN_ERAS.has(era) ? 'modern' : 'legacy';
  if (pinned !== leg && !isReported(document, [...backend, 'era'])) {
    document.report([...backend, 'leg'], `auto or ${pinned}, since backend.era is ${era}`);
  }
}

/** HTTP+SSE was there in the first revision alone, and servers of the modern era cannot be reached by it. */
function checkTransport(document: ConfigDocument, backend: readonly Segment[]): void {
  const transport = valueAt(document.data, [...backend, 'transport']);
  if (transport === 'streamable-http' && valueAt(document.data, [...backend, 'messagesUrl']) !== undefined) {
    document.report([...backend, 'messagesUrl'], 'the transport http-sse or auto for this key', {
      at: 'key',
    });
  }
  if (transport !== 'http-sse') return;
  for (const key of ['era', 'leg']) {
    const value = valueAt(document.data, [...backend, key]);
    if (typeof value !== 'string' || !MODERN_ERAS.has(value)) continue;
    document.report([...backend, key], 'auto or legacy, since the modern era has no transport http-sse');
  }
}

function isReported(document: ConfigDocument, segments: readonly Segment[]): boolean {
  return document.isBroken(segments) || document.problems.some(({ path }) => path === pathText(segments));
}
