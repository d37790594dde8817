// Where the peers live: installed when they are first measured, at pinned versions, outside the repository's own packages.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Of a program that was built from a checkout, the beginning of its revision. */
const REVISION_LENGTH = 9;
const HOME = fileURLToPath(new URL('../../node_modules/.cache/eragate-peers/', import.meta.url));

/** Installs npm packages (`name@version`) into a folder of their own, once. Returns the path of its `node_modules`. */
export async function npmPackages(...packages) {
  const folder = join(HOME, packages.join('+').replaceAll('/', '-'));
  const done = join(folder, 'done');
  if (!existsSync(done)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    await run('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder });
    writeFileSync(done, '');
  }
  return join(folder, 'node_modules');
}

/** Installs a Python package (`name==version`) into an environment of its own, once. Returns the path of its `bin`. */
export async function pythonPackage(requirement) {
  const folder = join(HOME, requirement);
  const done = join(folder, 'done');
  if (!existsSync(done)) {
    await run('python3', ['-m', 'venv', folder]);
    await run(join(folder, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', requirement]);
    writeFileSync(done, '');
  }
  return join(folder, 'bin');
}

/** The version that a program on the PATH tells of itself, or what it says in place of one. @throws when it is not there */
export async function versionOnPath(program, flag = '-v') {
  const { stdout, stderr } = await run(program, [flag]);
  const said = (stdout + stderr).trim();
  return /\d+(\.\d+)+/.exec(said)?.[0] ?? said.slice(0, REVISION_LENGTH);
}
