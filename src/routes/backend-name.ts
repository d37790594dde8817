import { basename } from 'node:path';
import type { BackendConfig } from '../config/index.js';

/**
 * Name of a backend in messages to people: its origin, since paths and queries may hold keys; or its program, since
 * arguments may.
 */
export function backendName({ url, command }: BackendConfig): string {
  if (command !== undefined) return basename(command.command);
  return new URL(urlOf(url)).origin;
}

/** @throws TypeError for a configuration that was not validated */
export function urlOf(url: string | undefined): string {
  if (url === undefined) throw new TypeError('not validated: a backend without url and command');
  return url;
}
