import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/**
 * What the files of each room may import of the others. A room is a folder of src, a side of an era, or a file that
 * lies in none of these.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'version.ts': [],
  jsonrpc: [],
  config: [],
  body: ['jsonrpc'],
  exchange: ['jsonrpc'],
  downstream: ['jsonrpc', 'exchange'],
  upstream: ['jsonrpc', 'exchange', 'body'],
  telemetry: ['jsonrpc', 'exchange', 'http'],
  authorization: ['jsonrpc', 'upstream'],
  'eras/era.ts': ['jsonrpc', 'exchange', 'downstream', 'upstream'],
  'eras/legacy/wire': ['jsonrpc', 'exchange'],
  'eras/legacy/client': ['jsonrpc', 'exchange', 'downstream', 'eras/era.ts', 'eras/legacy/wire'],
  'eras/legacy/backend': ['jsonrpc', 'exchange', 'body', 'upstream', 'eras/era.ts', 'eras/legacy/wire'],
  'eras/legacy/index.ts': ['eras/era.ts', 'eras/legacy/wire', 'eras/legacy/client', 'eras/legacy/backend'],
  'eras/modern/wire': ['jsonrpc', 'exchange'],
  'eras/modern/client': ['jsonrpc', 'exchange', 'downstream', 'eras/era.ts', 'eras/modern/wire'],
  'eras/modern/backend': ['jsonrpc', 'exchange', 'upstream', 'eras/era.ts', 'eras/modern/wire'],
  'eras/modern/index.ts': ['eras/era.ts', 'eras/modern/wire', 'eras/modern/client', 'eras/modern/backend'],
  'eras/index.ts': ['eras/era.ts', 'eras/legacy/index.ts', 'eras/modern/index.ts'],
  http: ['jsonrpc', 'exchange', 'body', 'downstream', 'eras/index.ts', 'authorization'],
  routes: [
    'version.ts',
    'jsonrpc',
    'config',
    'exchange',
    'downstream',
    'upstream',
    'telemetry',
    'authorization',
    'eras/index.ts',
  ],
  'gateway.ts': [
    'config',
    'exchange',
    'downstream',
    'upstream',
    'http',
    'routes',
    'telemetry',
    'shutdown.ts',
  ],
  'shutdown.ts': ['downstream', 'http', 'routes'],
  commands: ['version.ts', 'config', 'telemetry', 'routes', 'gateway.ts'],
  'main.ts': ['commands', 'routes', 'gateway.ts'],
};

interface Import {
  /** Path below src, as it is written: with `.js`. */
  readonly to: string;
  readonly typeOnly: boolean;
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const textOf = (file: string): string => readFileSync(join(SRC, file), 'utf8');

/** The imports of a file within src. */
function importsOf(file: string): Import[] {
  const imports = [
    ...textOf(file).matchAll(
      /\b(?:import|export)\s+(type\s)?(?:[^;']*?\sfrom\s+)?'(\.[^']*)'|\bimport\('(\.[^']*)'\)/g,
    ),
  ];
  return imports.map(([, type, given, dynamic]) => ({
    to: relative(SRC, join(SRC, dirname(file), given ?? dynamic ?? '')).replace(/\.js$/, '.ts'),
    typeOnly: type !== undefined,
  }));
}

/** The room of a file: its folder, the side of an era that it is in, or the file itself. */
function roomOf(file: string): string {
  const parts = file.split('/');
  const depth = parts[0] === 'eras' ? 3 : 1;
  return parts.length > depth ? parts.slice(0, depth).join('/') : file;
}

test('every room has its row in the table, and every row its room', () => {
  expect([...new Set(files.map(roomOf))].sort()).toEqual(Object.keys(MAY_IMPORT).sort());
});

test.each(Object.entries(MAY_IMPORT))('%s imports nothing but itself and %j', (room, allowed) => {
  const wrong = files
    .filter((file) => roomOf(file) === room)
    .flatMap((file) =>
      importsOf(file)
        .filter(({ to }) => ![room, ...allowed].includes(roomOf(to)))
        .map(({ to }) => `${file} imports ${to}`),
    );
  expect(wrong).toEqual([]);
});

test('every import is read: no file imports in a way that these tests overlook', () => {
  for (const file of files) {
    const lines = textOf(file)
      .split('\n')
      .filter((line) => /\bfrom ['"]|\bimport\(|^import ['"]/.test(line) && !/^\s*(\*|\/\/)/.test(line));
    for (const line of lines) expect(line, file).toMatch(/from '[^']+'|import\('[^']+'\)|^import '[^']+'/);
  }
});

test('no files import each other in a circle, not even for types', () => {
  const state = new Map<string, 'open' | 'done'>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open') {
      circles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
      return;
    }
    state.set(file, 'open');
    for (const { to } of importsOf(file)) visit(to, [...path, file]);
    state.set(file, 'done');
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

describe('wire is pure', () => {
  const PURE_PACKAGES: ReadonlySet<string> = new Set(['node:buffer', 'node:crypto', 'lru-cache']);
  const IMPURE =
    /\bperformance\.|\bDate\.now|\bnew Date\b|\bset(Timeout|Interval|Immediate)\b|\bprocess\.|\brandom\w*\(|\bfetch\(|\bconsole\./i;

  /** The files whose code a file runs: its own, and that of what it imports for more than types. */
  function runBy(file: string, seen: Set<string> = new Set()): Set<string> {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const { to, typeOnly } of importsOf(file)) if (!typeOnly) runBy(to, seen);
    return seen;
  }

  test.each(files.filter((file) => roomOf(file).endsWith('/wire')))('%s', (file) => {
    for (const run of runBy(file)) {
      const text = textOf(run).replaceAll(/\/\*\*?[\s\S]*?\*\/|\/\/.*$/gm, '');
      expect(text, run).not.toMatch(IMPURE);
      const packages = [...text.matchAll(/^import (?!type\b)[^;]*?from '([^.'][^']*)'/gm)].map(
        ([, name]) => name,
      );
      expect(
        packages.filter((name) => !PURE_PACKAGES.has(name as string)),
        run,
      ).toEqual([]);
    }
  });
});
