// The official conformance suite: fetched from npm at a pinned version into a cache folder, on a Node that it runs on.

import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, imageNode, install, run } from '../support/fetched.mjs';

export const SUITE_VERSION = '0.2.0-alpha.12';
const NEEDED_NODE = 22;

const cache = cacheFolder(`conformance-${SUITE_VERSION}`);
const ownNodeWillDo = Number(process.versions.node.split('.')[0]) >= NEEDED_NODE;

/**
 * Makes the suite ready to run.
 * @param node path of a Node of 22 or newer; by default this one, or that of the image
 * @returns `{ nodeVersion, run }`, `run(args, folder)` runs a command of the suite and gives its exit code
 */
export async function prepareSuite(node) {
  const script = join(cache, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  if (!existsSync(script)) await install(cache, [`@modelcontextprotocol/conformance@${SUITE_VERSION}`]);
  const binary = node ?? (ownNodeWillDo ? process.execPath : await imageNode());
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
