// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { interpolate, placeholderNames } from '../../src/config/interpolate.js';

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'eragate-interpolate-'));
  writeFileSync(join(directory, 'token'), 'from-file\n');
  writeFileSync(join(directory, 'windows'), 'from-windows\r\n');
  writeFileSync(join(directory, 'two'), 'one\n\n');
  writeFileSync(join(directory, 'nested'), '${NAME}');
  writeFileSync(join(directory, 'large'), Buffer.alloc(64 * 1024 + 1, 'x'));
  writeFileSync(join(directory, 'binary'), Buffer.from([0xff, 0xfe]));
  mkdirSync(join(directory, 'folder'));
});

afterAll(() => rmSync(directory, { recursive: true }));

const env = { NAME: 'value', EMPTY: '', BRACES: '${NAME}' };

function filled(text: string): string {
  const { text: result, problems } = interpolate(text, { env, directory });
  expect(problems).toEqual([]);
  return result;
}

describe('a placeholder is replaced', () => {
  test.each([
    ['plain', 'plain'],
    ['${NAME}', 'value'],
    ['Bearer ${NAME}!', 'Bearer value!'],
    ['${NAME}${NAME}', 'valuevalue'],
    ['${NAME:-other}', 'value'],
    ['${MISSING:-other}', 'other'],
    ['${MISSING:-}', ''],
    ['${EMPTY:-other}', 'other'],
    ['${EMPTY}', ''],
    ['${MISSING:-http://127.0.0.1:3001/mcp}', 'http://127.0.0.1:3001/mcp'],
    ['$NAME $ {NAME} $', '$NAME $ {NAME} $'],
  ])('%j becomes %j', (text, result) => {
    expect(filled(text)).toBe(result);
  });

  test('from a file, without the line break at its end', () => {
    expect(filled(`\${file:${directory}/token}`)).toBe('from-file');
    expect(filled(`\${file:${directory}/windows}`)).toBe('from-windows');
    expect(filled(`\${file:${directory}/two}`)).toBe('one\n');
  });

  test('from a file beside the gateway file', () => {
    expect(filled('${file:token}')).toBe('from-file');
  });

  test('only once: the value is not searched for placeholders', () => {
    expect(filled('${BRACES}')).toBe('${NAME}');
    expect(filled('${file:nested}')).toBe('${NAME}');
  });

  test.each([
    ['$${NAME}', '${NAME}'],
    ['$$${NAME}', '$${NAME}'],
    ['$${NAME} ${NAME}', '${NAME} value'],
  ])('but not where it is escaped: %j becomes %j', (text, result) => {
    expect(filled(text)).toBe(result);
  });
});

describe('a placeholder that cannot be replaced', () => {
  test.each([
    ['${MISSING}', '${MISSING}, which is not in the environment'],
    ['${toString}', '${toString}, which is not in the environment'],
    ['${file:gone}', '${file:gone}, which cannot be read (ENOENT)'],
    ['${file:folder}', '${file:folder}, which is not a file'],
    ['${file:large}', '${file:large}, which is too large'],
    ['${file:binary}', '${file:binary}, which is not UTF-8 text'],
    ['${}', 'the placeholder ${}, which cannot be read'],
    ['${NAME', 'the placeholder ${NAME}, which cannot be read'],
    ['${1A}', 'the placeholder ${1A}, which cannot be read'],
    ['${NAME-secret}', 'the placeholder ${NAME…}, which cannot be read'],
    ['${A:-${NAME}}', 'the placeholder ${A…}, which cannot be read'],
  ])('%j is a problem', (text, found) => {
    const { problems } = interpolate(text, { env, directory });
    expect(problems.map((problem) => problem.found)).toEqual([found]);
  });

  test('does not hide the next one', () => {
    expect(interpolate('${A} ${NAME} ${B}', { env, directory }).problems).toHaveLength(2);
  });
});

test('placeholderNames leaves out defaults and other text', () => {
  expect(placeholderNames('Bearer abc ${TOKEN:-secret} ${file:/run/x} $${NO}')).toBe(
    '${TOKEN…} ${file:/run/x}',
  );
});
