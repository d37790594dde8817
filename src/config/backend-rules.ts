/** Rules for the keys of a backend that depend on each other. */

import type { ConfigDocument } from './document.js';
import { type Segment, valueAt } from './problems.js';
import { reservedHeaderReason } from './reserved-headers.js';
import { expectedText } from './schema.js';
import { checkUrl } from './url-rules.js';

/** The values of `era` that fix the modern era; all others but `auto` fix the legacy one. */
const MODERN_ERAS: ReadonlySet<string> = new Set(['modern', '2026-07-28']);

/** Keys of a server that is started, and keys of a server at a URL. */
const KEYS_OF_COMMAND: readonly string[] = ['args', 'env', 'cwd', 'process'];
const KEYS_OF_URL: readonly string[] = [
  'transport',
  'messagesUrl',
  'headers',
  'hostHeader',
  'authorization',
  'forward',
];

export function checkBackend(document: ConfigDocument, backend: readonly Segment[]): void {
  checkKind(document, backend);
  checkProgram(document, [...backend, 'command']);
  checkUrl(document, [...backend, 'url'], { query: true });
  checkUrl(document, [...backend, 'messagesUrl'], { query: true });
  checkHeaders(document, [...backend, 'headers']);
  checkLeg(document, backend);
  checkTransport(document, backend);
}

/** A backend has either `url` or `command`, and no key of the other. */
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
    const [kind, other, keys] = url
      ? (['url', 'command', KEYS_OF_COMMAND] as const)
      : (['command', 'url', KEYS_OF_URL] as const);
    for (const key of keys.filter(has))
      report(key, `the key ${key} beside ${kind}`, `it beside ${other} only`);
  }
}

function isMapping(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Rejects a command line: no shell splits it into arguments. */
function checkProgram(document: ConfigDocument, segments: readonly Segment[]): void {
  const program = valueAt(document.data, segments);
  if (typeof program === 'string' && /^[^/\\]*\s/.test(program))
    document.report(segments, 'a program alone; its arguments go into args');
}

function checkHeaders(document: ConfigDocument, segments: readonly Segment[]): void {
  const headers = valueAt(document.data, segments);
  if (typeof headers !== 'object' || headers === null) return;
  const seen = new Map<string, string>();
  for (const name of Object.keys(headers)) {
    const reason = reservedHeaderReason(name);
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

/** Rejects a `leg` that contradicts a fixed era. */
function checkLeg(document: ConfigDocument, backend: readonly Segment[]): void {
  const era = valueAt(document.data, [...backend, 'era']);
  const leg = valueAt(document.data, [...backend, 'leg']);
  if (typeof era !== 'string' || era === 'auto' || (leg !== 'legacy' && leg !== 'modern')) return;
  const fixed = MODERN_ERAS.has(era) ? 'modern' : 'legacy';
  if (fixed !== leg && !document.isReported([...backend, 'era'])) {
    document.report([...backend, 'leg'], `auto or ${fixed}, since backend.era is ${era}`);
  }
}

/** Rejects HTTP+SSE with the modern era, which does not have it, and `messagesUrl` without HTTP+SSE. */
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
