import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from './child.js';
import type { Peer } from './peer.js';

/** The Python libraries that servers are written with: both lines of the SDK, and FastMCP on the first of them. */
export type PythonLibrary = 'mcp 1.29.0' | 'mcp 2.3.0' | 'FastMCP 3.4.5';
export const PYTHON_LIBRARIES: readonly PythonLibrary[] = ['mcp 1.29.0', 'mcp 2.3.0', 'FastMCP 3.4.5'];

const PLACES: Record<PythonLibrary, { name: string; environment: string }> = {
  'mcp 1.29.0': { name: 'mcp1', environment: '1' },
  'mcp 2.3.0': { name: 'mcp2', environment: '2' },
  'FastMCP 3.4.5': { name: 'fastmcp', environment: '1' },
};

/** Folder of the environments that `test/python/install.sh` makes; undefined where there are none. */
const environments = process.env['ERAGATE_TEST_PYTHON'];
export const hasPython: boolean = environments !== undefined;
/** For the names of suites that are left out without them. */
export const PYTHON_NEEDED = hasPython
  ? ''
  : ' (left out: run `test/python/install.sh DIR` and set ERAGATE_TEST_PYTHON=DIR)';

export interface PythonOptions {
  /** No session ids. */
  stateless?: boolean;
  /** Answers as JSON, without streams. */
  json?: boolean;
}

/** The server of `test/python/server.py` on one of the libraries. */
export function startPython(library: PythonLibrary, options: PythonOptions = {}): Promise<Peer> {
  const { name, environment } = PLACES[library];
  const flags = Object.entries(options).flatMap(([flag, on]) => (on ? [flag] : []));
  return startScript(library, environment, 'server.py', (port) => [name, String(port), ...flags]);
}

/** The server of `test/python/orders.py`, on FastMCP. */
export function startPythonOrders(): Promise<Peer> {
  return startScript('FastMCP orders', PLACES['FastMCP 3.4.5'].environment, 'orders.py', (port) => [
    String(port),
  ]);
}

function startScript(
  name: string,
  environment: string,
  file: string,
  args: (port: number) => string[],
): Promise<Peer> {
  const script = fileURLToPath(new URL(`../../python/${file}`, import.meta.url));
  return startChild(name, (port) => ({
    command: join(environments ?? '', environment, 'bin', 'python'),
    args: [script, ...args(port)],
    env: { PYTHONDONTWRITEBYTECODE: '1' },
  }));
}
