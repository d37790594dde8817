import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Loose } from '../net.js';
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
  /** HTTP+SSE. */
  sse?: boolean;
}

const interpreter = (environment: string) => join(environments ?? '', environment, 'bin', 'python');
const scriptPath = (file: string) => fileURLToPath(new URL(`../../python/${file}`, import.meta.url));

/** What a client of `test/python/client.py` has seen of its one call. */
export interface PythonClientReport {
  readonly revision: string;
  readonly asked: readonly string[];
  readonly progress: readonly number[];
  readonly answers: Loose;
}

/**
 * Runs a client of one line of the SDK, which calls the fixture's tool `ask` and answers what it is asked.
 * @param args of the tool
 * @param sse whether the URL is that of an event stream of HTTP+SSE
 * @throws Error with what it wrote when it fails
 */
export function runPythonClient(
  line: 1 | 2,
  url: string,
  args: unknown,
  sse = false,
): Promise<PythonClientReport> {
  const command = [scriptPath('client.py'), String(line), url, JSON.stringify(args), ...(sse ? ['sse'] : [])];
  return new Promise((resolve, reject) => {
    execFile(interpreter(String(line)), command, { timeout: 20_000 }, (error, out, err) => {
      if (error) reject(new Error(`${error.message}\n${err}`));
      else resolve(JSON.parse(out));
    });
  });
}

/** The server of `test/python/server.py` on one of the libraries. */
export function startPython(library: PythonLibrary, options: PythonOptions = {}): Promise<Peer> {
  const { name, environment } = PLACES[library];
  const flags = Object.entries(options).flatMap(([flag, on]) => (on ? [flag] : []));
  return startScript(library, environment, 'server.py', (port) => [name, String(port), ...flags]);
}

/** The server of `test/python/telling.py`, which tells of changes, on one of the libraries. */
export function startPythonTelling(library: PythonLibrary): Promise<Peer> {
  const { name, environment } = PLACES[library];
  return startScript(`${library} telling`, environment, 'telling.py', (port) => [name, String(port)]);
}

/** The server of `test/python/orders.py`, on FastMCP. */
export function startPythonOrders(): Promise<Peer> {
  return startScript('FastMCP orders', PLACES['FastMCP 3.4.5'].environment, 'orders.py', (port) => [
    String(port),
  ]);
}

/** The server of `test/python/tasks.py`, on FastMCP with the extension of tasks. */
export function startPythonTasks(): Promise<Peer> {
  return startScript('FastMCP tasks', PLACES['mcp 2.3.0'].environment, 'tasks.py', (port) => [String(port)]);
}

function startScript(
  name: string,
  environment: string,
  file: string,
  args: (port: number) => string[],
): Promise<Peer> {
  return startChild(name, (port) => ({
    command: interpreter(environment),
    args: [scriptPath(file), ...args(port)],
    env: { PYTHONDONTWRITEBYTECODE: '1' },
  }));
}
