import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** What the files of a room may import of the others. A folder that is not listed puts the parts together. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  jsonrpc: [],
  config: [],
  exchange: ['jsonrpc'],
  downstream: ['jsonrpc', 'exchange'],
  upstream: ['jsonrpc', 'exchange'],
  'eras/legacy/wire': ['jsonrpc', 'exchange'],
  'eras/legacy/client': ['jsonrpc', 'exchange', 'downstream', 'eras', 'eras/legacy/wire'],
  'eras/legacy/backend': ['jsonrpc', 'exchange', 'upstream', 'eras', 'eras/legacy/wire'],
  'eras/modern/wire': ['jsonrpc', 'exchange'],
  'eras/modern/client': [
    'jsonrpc',
    'exchange',
    'downstream',
    'eras',
    'eras/modern/wire',
    'eras/modern/backend',
  ],
  'eras/modern/backend': ['jsonrpc', 'exchange', 'upstream', 'eras', 'eras/modern/wire'],
  authorization: ['jsonrpc', 'upstream'],
  telemetry: ['jsonrpc', 'exchange'],
  http: ['jsonrpc', 'exchange', 'downstream', 'upstream', 'eras', 'authorization'],
};

/** The room of a file below `src`: its folder, and within an era one of the three sides. */
function folderOf(file: string): string {
  return file
    .split('/')
    .slice(0, file.startsWith('eras/') ? 3 : 1)
    .filter((part) => !part.endsWith('.ts') && !part.endsWith('.js'))
    .join('/');
}

function imports(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  const specifiers = [...text.matchAll(/\bfrom '(\.[^']*)'|\bimport\('(\.[^']*)'\)/g)].map(
    ([, given, dynamic]) => given ?? dynamic ?? '',
  );
  return specifiers.map((specifier) => relative(SRC, join(SRC, dirname(file), specifier)));
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

test.each(Object.entries(MAY_IMPORT))('%s imports nothing but itself and %j', (folder, allowed) => {
  const own = files.filter((file) => folderOf(file) === folder);
  expect(own.length).toBeGreaterThan(0);
  const wrong = own.flatMap((file) =>
    imports(file)
      .filter((target) => target !== 'version.js' && ![folder, ...allowed].includes(folderOf(target)))
      .map((target) => `${file} imports ${target}`),
  );
  expect(wrong).toEqual([]);
});

test('an era is known by name to the list of eras and to those that put the parts together alone', () => {
  const knowing = files.filter(
    (file) =>
      !file.startsWith('eras/legacy/') && imports(file).some((target) => target.startsWith('eras/legacy/')),
  );
  expect(knowing.filter((file) => file !== 'eras/index.ts' && !file.startsWith('routes/')).sort()).toEqual([
    'gateway.ts',
  ]);
});

test('every import is read: no file imports in a way that these tests overlook', () => {
  for (const file of files) {
    const text = readFileSync(join(SRC, file), 'utf8');
    const lines = text
      .split('\n')
      .filter((line) => /\bfrom ['"]|\bimport\(/.test(line) && !/^\s*(\*|\/\/)/.test(line));
    for (const line of lines) expect(line, file).toMatch(/from '[^']+'|import\('[^']+'\)/);
  }
});
