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

const DOCKERFILE = new URL('../../docker/Dockerfile', import.meta.url);

/** The major version of Node that the image runs. */
export function imageNodeMajor() {
  return Number(/^FROM node:(\d+)/m.exec(readFileSync(DOCKERFILE, 'utf8'))[1]);
}

/** Path of the Node that the image runs: this one, or one from npm. */
export async function imageNode() {
  const major = imageNodeMajor();
  if (Number(process.versions.node.split('.')[0]) === major) return process.execPath;
  const folder = cacheFolder(`node-${major}`);
  const binary = join(folder, 'node_modules/node/bin/node');
  if (!existsSync(binary)) await install(folder, [`node@${major}`]);
  return binary;
}
