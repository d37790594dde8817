// The official conformance suite: fetched from npm at a pinned version into a cache folder, on a Node that it runs on.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const SUITE_VERSION = '0.2.0-alpha.12';
const NEEDED_NODE = 22;
const NODE_PACKAGE = 'node@24';

const cache = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'eragate',
  `conformance-${SUITE_VERSION}`,
);

const ownNodeWillDo = Number(process.versions.node.split('.')[0]) >= NEEDED_NODE;

/** Runs a command and gives its exit code; what it writes goes to `file`. */
async function run(command, args, file, env = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const stop = () => child.kill('SIGKILL');
  process.once('exit', stop);
  const written = [];
  child.stdout.on('data', (chunk) => written.push(chunk));
  child.stderr.on('data', (chunk) => written.push(chunk));
  const [code] = await once(child, 'close');
  process.off('exit', stop);
  if (file) writeFileSync(file, Buffer.concat(written));
  return { code, text: Buffer.concat(written).toString() };
}

async function install(folder, packages) {
  mkdirSync(folder, { recursive: true });
  const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', ...packages];
  const { code, text } = await run('npm', args);
  if (code !== 0) throw new Error(`npm install ${packages.join(' ')} failed:\n${text}`);
}

/**
 * Makes the suite ready to run.
 * @param node path of a Node of 22 or newer; by default this one, or one from npm
 * @returns `{ nodeVersion, run }`, `run(args, folder)` runs a command of the suite and gives its exit code
 */
export async function prepareSuite(node) {
  const script = join(cache, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const fetched = join(cache, 'node/node_modules/node/bin/node');
  if (!existsSync(script)) await install(cache, [`@modelcontextprotocol/conformance@${SUITE_VERSION}`]);
  const binary = node ?? (ownNodeWillDo ? process.execPath : fetched);
  if (!existsSync(binary)) await install(join(cache, 'node'), [NODE_PACKAGE]);
  const { code, text } = await run(binary, ['--version']);
  if (code !== 0) throw new Error(`${binary} does not run: ${text}`);
  return {
    nodeVersion: text.trim(),
    async run(args, folder, env) {
      mkdirSync(folder, { recursive: true });
      return (await run(binary, [script, ...args, '-o', folder], join(folder, 'output.txt'), env)).code;
    },
  };
}

/** What the suite adds to the folder of a scenario: the time. */
const STAMP = /-\d{4}-\d\d-\d\dT[\d-]+Z$/;

/** The scenario of a folder of results; that of a server has `server-` before it. */
const scenarioOf = (folder, kind) => {
  const name = folder.replace(STAMP, '');
  return kind === 'server' ? name.replace(/^server-/, '') : name;
};

/** What the suite notes of checks that it did not make. */
const NOT_MADE = new Set(['INFO', 'SKIPPED']);

/** The one check of a scenario that left none, since it did not get as far as that. */
const BROKEN_OFF = [{ id: 'scenario-ran', status: 'FAILURE', errorMessage: 'The scenario broke off' }];

/**
 * The results of a run: scenario -> check -> `{ status, message }`. A check that comes more than once is numbered, and
 * one that was not made is left out.
 */
export function readResults(folder, kind) {
  const scenarios = new Map();
  for (const place of readdirSync(folder, { recursive: true })
    .filter((name) => STAMP.test(name))
    .sort()) {
    const file = join(folder, place, 'checks.json');
    const found = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : BROKEN_OFF;
    const scenario = scenarioOf(place, kind);
    const checks = scenarios.get(scenario) ?? new Map();
    for (const { id, status, errorMessage } of found) {
      if (NOT_MADE.has(status)) continue;
      let key = id;
      for (let count = 2; checks.has(key); count += 1) key = `${id}#${count}`;
      checks.set(key, { status, message: errorMessage });
    }
    scenarios.set(scenario, checks);
  }
  return scenarios;
}
