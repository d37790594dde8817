// Installs peers into a cache of this run's own, `.interop` (or ERAGATE_INTEROP_CACHE); what is there is used again.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './processes.mjs';

export const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(HERE, '../../..');
const CACHE = process.env.ERAGATE_INTEROP_CACHE ?? join(ROOT, '.interop');
const INSTALL_MS = 10 * 60_000;

/** The packages of this repository itself. */
export const own = { kind: 'own' };
/** Packages of npm by exact version, in a folder named `key`. */
export const npm = (key, packages) => ({ kind: 'npm', key, packages });
/** Packages of PyPI by exact version, in a virtual environment named `key`. */
export const pip = (key, packages) => ({ kind: 'pip', key, packages });
/** A program in Go or Rust, of the folder `key` here, which is built. */
export const go = (key) => ({ kind: 'go', key });
export const cargo = (key) => ({ kind: 'cargo', key });

const INSTALLERS = {
  async npm(folder, { packages }) {
    writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
    const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
    const flags = ['--no-audit', '--no-fund', '--no-save', '--loglevel=error', '--prefer-offline'];
    await must({ command: 'npm', args: ['install', ...flags, ...wanted], cwd: folder });
  },
  async pip(folder, { packages }) {
    await must({ command: 'python3', args: ['-m', 'venv', folder] });
    const wanted = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
    const flags = ['--quiet', '--disable-pip-version-check'];
    await must({ command: join(folder, 'bin/pip'), args: ['install', ...flags, ...wanted] });
  },
  async go(folder, { key }) {
    cpSync(join(HERE, key), folder, { recursive: true });
    await must({ command: 'go', args: ['build', '-o', 'bin/', './...'], cwd: folder });
  },
  async cargo(folder, { key }) {
    cpSync(join(HERE, key), folder, { recursive: true });
    await must({ command: 'cargo', args: ['build', '--quiet'], cwd: folder });
  },
};

async function must(command) {
  const { code, output, timedOut } = await run(command, INSTALL_MS);
  if (code === 0) return;
  throw new Error(`${command.command} ${timedOut ? 'took too long' : `gave ${code}`}: ${output.slice(-800)}`);
}

const installed = new Map();

/**
 * The folder in which a peer is installed; installs it first where that was not done yet. The scripts of this folder are
 * copied beside npm packages, so that these are what they import.
 */
export function ensure(install) {
  const id = `${install.kind}/${install.key}`;
  if (!installed.has(id)) installed.set(id, ensureOnce(install));
  return installed.get(id);
}

async function ensureOnce(install) {
  if (install.kind === 'own') return { folder: ROOT, scripts: HERE };
  const shared = sharedEnvironment(install);
  if (shared !== undefined) return { folder: shared, scripts: HERE };
  const folder = join(CACHE, install.kind, install.key);
  const stamp = join(folder, '.installed');
  const wanted = JSON.stringify(install.packages ?? sourcesOf(install));
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await INSTALLERS[install.kind](folder, install);
    writeFileSync(stamp, wanted);
  }
  if (install.kind !== 'npm') return { folder, scripts: HERE };
  for (const part of ['clients', 'servers'])
    cpSync(join(HERE, part), join(folder, part), { recursive: true });
  return { folder, scripts: folder };
}

/** The tests have Python environments of their own, which need not be made twice. */
function sharedEnvironment({ kind, key }) {
  const folder = join(process.env.ERAGATE_TEST_PYTHON ?? '', key);
  return kind === 'pip' && process.env.ERAGATE_TEST_PYTHON && existsSync(join(folder, 'bin'))
    ? folder
    : undefined;
}

function sourcesOf({ key }) {
  const files = readdirSync(join(HERE, key), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .sort();
}

/** The version of a package of this repository. */
export function ownVersion(name) {
  return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
}
