/** Loads a gateway file: reads YAML, replaces placeholders, validates, checks rules, builds the {@link Config}. */

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { buildConfig } from './build.js';
import { ConfigError } from './problems.js';
import type { RawConfig } from './raw.js';
import { readDocument } from './read-yaml.js';
import { checkRules } from './rules.js';
import type { Config } from './types.js';
import { validateAgainstSchema } from './validate.js';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks a gateway file.
 *
 * @throws ConfigError with all problems, also where the file cannot be read
 */
export function loadConfig(file: string, env: Environment = process.env): Config {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw wholeFileError(file, `a file that cannot be read (${code})`, 'a readable YAML file');
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw wholeFileError(file, 'bytes that are not UTF-8 text', 'a YAML file in UTF-8');
  }
  return parseConfig(text, file, env);
}

/**
 * Checks the text of a gateway file.
 *
 * @param file its name in messages; relative paths in `${file:…}` start at its folder
 * @throws ConfigError with all problems
 */
export function parseConfig(text: string, file: string, env: Environment = process.env): Config {
  const document = readDocument(text, file, { env, directory: dirname(resolve(file)) });
  if (document.data === null) {
    document.report([], 'a mapping with routes, such as config/minimal.yaml', { found: 'an empty file' });
  } else if (document.data !== undefined) {
    validateAgainstSchema(document);
    checkRules(document);
  }
  if (document.problems.length > 0) {
    throw new ConfigError(document.problems.toSorted((a, b) => a.line - b.line || a.column - b.column));
  }
  return buildConfig(document.data as RawConfig, document.warnings);
}

function wholeFileError(file: string, found: string, expected: string): ConfigError {
  const message = `found ${found}, expected ${expected}`;
  return new ConfigError([{ file, line: 1, column: 1, path: '', found, expected, message }]);
}
