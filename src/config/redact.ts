/** Values as error messages show them: enough to find them in the file, and never a secret. */

import { placeholderNames } from './interpolate.js';
import { type Segment, valueAt } from './problems.js';

const MAX_SHOWN = 80;
/** Keys of a backend whose values may contain tokens. */
const SECRET_OF_BACKEND: ReadonlySet<Segment> = new Set(['headers', 'env', 'args']);

/**
 * Describes the value at `segments`: text in quotes, other types in words. A value with placeholders is shown as it is
 * written in the file (`source`); of headers, arguments, variables and seal keys only the names of placeholders are shown.
 */
export function foundText(data: unknown, segments: readonly Segment[], source: string | undefined): string {
  const value = valueAt(data, segments);
  if (value === undefined) return 'nothing';
  if (value === null) return 'an empty value';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (value instanceof Date || value instanceof Uint8Array) return 'a value of a special YAML type';
  if (typeof value === 'object') return 'a mapping';
  if (isSecret(segments)) {
    const names = source === undefined ? '' : placeholderNames(source);
    return names === '' ? `a ${typeof value} that is not shown here` : names;
  }
  if (typeof value !== 'string' && source === undefined) return String(value);
  return quoted(source ?? String(value));
}

/** The text in quotes, shortened, without the credentials and the query of a URL. */
export function quoted(text: string): string {
  const safe = text.replace(/\/\/[^/\s]*@/g, '//…@').replace(/(:\/\/[^\s?]*)\?.*$/s, '$1?…');
  return JSON.stringify(safe.length > MAX_SHOWN ? `${safe.slice(0, MAX_SHOWN)}…` : safe);
}

function isSecret(segments: readonly Segment[]): boolean {
  return segments[0] === 'sealKeys' || SECRET_OF_BACKEND.has(segments[3] ?? '');
}
