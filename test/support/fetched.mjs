// What is fetched from npm when a command needs it, into a cache folder of its own, rather than to be a dependency.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder in which something of this name is kept from run to run. */
export const cacheFolder = (name) =>
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'eragate', name);

/** Runs a command and gives its exit code and what it wrote, which goes to `file` as well. */
export async function run(command, args, file, env = {}) {
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

/** Installs packages of npm into a folder. */
export async function install(folder, packages) {
  mkdirSync(folder, { recursive: true });
  const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', ...packages];
  const { code, text } = await run('npm', args);
  if (code !== 0) throw new Error(`npm install ${packages.join(' ')} failed:\n${text}`);
}

/** Path of a Node from npm, by version or major version. */
async function fetchedNode(version) {
  const folder = cacheFolder(`node-${version}`);
  const binary = join(folder, 'node_modules/node/bin/node');
  if (!existsSync(binary)) await install(folder, [`node@${version}`]);
  return binary;
}

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The major version of Node that the image runs. */
export function imageNodeMajor() {
  return Number(/^FROM node:(\d+)/m.exec(read('docker/Dockerfile'))[1]);
}

/** Path of the Node that the image runs: this one, or one from npm. */
export async function imageNode() {
  const major = imageNodeMajor();
  return Number(process.versions.node.split('.')[0]) === major ? process.execPath : fetchedNode(major);
}

/** Path of the oldest Node that package.json allows, from npm. */
export function oldestNode() {
  return fetchedNode(/^>=(\S+)$/.exec(JSON.parse(read('package.json')).engines.node)[1]);
}
