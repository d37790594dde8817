/** Warnings about what only the machine can tell: programs and folders that are not there, and texts that a shell would change. */

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { ConfigDocument } from './document.js';
import { type Segment, valueAt } from './problems.js';

/** Warns of a program that cannot be started on this machine: the file may be meant for another one. */
export function warnOfMissingProgram(document: ConfigDocument, backend: readonly Segment[]): void {
  const text = (key: string): string | undefined => {
    const value = valueAt(document.data, [...backend, key]);
    return typeof value === 'string' && !document.isReported([...backend, key]) ? value : undefined;
  };
  const command = text('command');
  if (command === undefined) return;
  const cwd = text('cwd');
  if (cwd?.startsWith('~')) document.warn([...backend, 'cwd'], TILDE);
  else if (cwd !== undefined && !isFolder(cwd))
    document.warn([...backend, 'cwd'], 'there is no such folder on this machine');
  if (command.startsWith('~')) document.warn([...backend, 'command'], TILDE);
  else if (!isProgram(command, cwd, pathOf(document, backend)))
    document.warn([...backend, 'command'], 'there is no such program on this machine');
  const args = valueAt(document.data, [...backend, 'args']);
  if (!Array.isArray(args)) return;
  for (const [index, arg] of args.entries())
    if (typeof arg === 'string' && /^~($|\/)/.test(arg)) document.warn([...backend, 'args', index], TILDE);
}

const TILDE = 'no shell replaces ~: write the whole path';

/** PATH of the program. */
function pathOf(document: ConfigDocument, backend: readonly Segment[]): string {
  const own = valueAt(document.data, [...backend, 'env', 'PATH']);
  return typeof own === 'string' ? own : (document.env['PATH'] ?? '');
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Whether the system finds a program: by its path from the folder that it starts in, else in the folders of PATH. */
function isProgram(command: string, cwd: string | undefined, path: string): boolean {
  const base = cwd ?? '.';
  // Windows adds extensions, and PATH may be left to the system.
  if (process.platform === 'win32' || (path === '' && !command.includes('/'))) return true;
  if (command.includes('/')) return isExecutable(resolve(base, command));
  return path.split(delimiter).some((folder) => isExecutable(join(resolve(base, folder), command)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A variable as a shell has it, outside of a placeholder. */
const BARE_VARIABLE = /(?<!\$)\$([A-Z_][A-Z0-9_]+)\b/;

/** Warns of `$NAME` anywhere in the file, which is not replaced. */
export function warnOfBareVariables(
  document: ConfigDocument,
  value: unknown,
  segments: readonly Segment[],
): void {
  if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value))
      warnOfBareVariables(document, child, [...segments, Array.isArray(value) ? Number(key) : key]);
    return;
  }
  if (typeof value !== 'string') return;
  // Values of placeholders are not looked at: a secret may contain anything.
  const written = (document.sourceOf(segments) ?? value).replace(/\$\{[^}]*\}/g, '');
  const [, name] = BARE_VARIABLE.exec(written) ?? [];
  if (name !== undefined)
    document.warn(segments, `$${name} stays as it is; write \${${name}} for the variable`);
}

/** Warns of proxy variables, which many programs honour, where a backend would be reached through one. */
export function warnOfProxyVariables(document: ConfigDocument, url: readonly Segment[]): void {
  const text = valueAt(document.data, url);
  if (typeof text !== 'string' || !URL.canParse(text)) return;
  const { protocol, hostname, port } = new URL(text);
  const name = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = document.env[name] || document.env[name.toLowerCase()];
  if (!proxy || isExcluded(hostname, port, document.env['NO_PROXY'] ?? document.env['no_proxy'] ?? ''))
    return;
  document.warn(url, `${name} is not used: the gateway connects to backends directly`);
}

function isExcluded(hostname: string, port: string, noProxy: string): boolean {
  return noProxy
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const [, host = '', only] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      if (only !== undefined && only !== port) return false;
      return entry === '*' || hostname === host || hostname.endsWith(`.${host}`);
    });
}
