/** Replaces `${NAME}`, `${NAME:-default}` and `${file:/path}` in a text; `$${` is a literal `${`. */

import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

/** More than any key or token needs; a wrong path must not fill the memory. */
const MAX_FILE_BYTES = 64 * 1024;

const PLACEHOLDER = /\$\$\{|\$\{([^}]*)(\}?)/g;
const FROM_FILE = /^file:(.+)$/s;
const FROM_ENVIRONMENT = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

export interface InterpolationSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The base of relative paths in `${file:…}`. */
  readonly directory: string;
}

export interface InterpolationProblem {
  /** The placeholder as written. */
  readonly source: string;
  readonly found: string;
  readonly expected: string;
}

export interface Interpolated {
  readonly text: string;
  /** Whether a placeholder was replaced, so that `text` may be a secret. */
  readonly filled: boolean;
  readonly problems: readonly InterpolationProblem[];
}

/** Replaces every placeholder of `text`; one that cannot be replaced is a problem and is kept. */
export function interpolate(text: string, sources: InterpolationSources): Interpolated {
  const problems: InterpolationProblem[] = [];
  let filled = false;
  const result = text.replace(PLACEHOLDER, (source: string, body: string | undefined, close: string) => {
    if (body === undefined) return '${';
    filled = true;
    const value = close === '' ? unreadable(source) : fill(body, source, sources);
    if (typeof value === 'string') return value;
    problems.push(value);
    return source;
  });
  return { text: result, filled, problems };
}

/** The names of the placeholders in a text, without defaults and other text, for messages about secrets. */
export function placeholderNames(text: string): string {
  const names = [...text.matchAll(PLACEHOLDER)].map(([, body]) => body).filter((body) => body !== undefined);
  return names.map(nameOnly).join(' ');
}

function nameOnly(body: string): string {
  if (FROM_FILE.test(body)) return `\${${body}}`;
  const name = /^\w*/.exec(body)?.[0] ?? '';
  return name === body ? `\${${name}}` : `\${${name}…}`;
}

function fill(body: string, source: string, sources: InterpolationSources): string | InterpolationProblem {
  const path = FROM_FILE.exec(body)?.[1];
  if (path !== undefined && !path.includes('${')) return readSecret(path, source, sources.directory);
  const [, name, fallback] = FROM_ENVIRONMENT.exec(body) ?? [];
  if (name === undefined || fallback?.includes('${')) return unreadable(source);
  const value = Object.hasOwn(sources.env, name) ? sources.env[name] : undefined;
  // As in a shell, the default of `:-` is also used for a variable that is set but empty.
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
  if (value !== undefined) return value;
  return {
    source,
    found: `\${${name}}, which is not in the environment`,
    expected: `the environment variable ${name} to be set, or a default as in \${${name}:-default}`,
  };
}

function unreadable(source: string): InterpolationProblem {
  return {
    source,
    found: `the placeholder ${placeholderNames(source)}, which cannot be read`,
    expected: `\${NAME}, \${NAME:-default without braces} or \${file:/path}; write $\${ for a literal \${`,
  };
}

function readSecret(path: string, source: string, directory: string): string | InterpolationProblem {
  const file = resolve(directory, path);
  const problem = (what: string): InterpolationProblem => ({
    source,
    found: `\${file:${path}}, ${what}`,
    expected: `a readable text file of at most ${MAX_FILE_BYTES / 1024} KiB at ${file}`,
  });
  try {
    const stat = statSync(file);
    if (!stat.isFile()) return problem('which is not a file');
    if (stat.size > MAX_FILE_BYTES) return problem('which is too large');
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
    return text.replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof TypeError) return problem('which is not UTF-8 text');
    return problem(`which cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
}
