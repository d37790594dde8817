import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { killAtExit } from '../kill-at-exit.js';
import { freePort, until } from '../net.js';
import type { Peer } from './peer.js';

const nobody = () => {};

/** Servers in Python take seconds to load, and many of them on a busy machine. */
const START_MS = 45_000;

/** How a server is started as a process of its own, on a port of 127.0.0.1 at the path `/mcp`. */
export interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** True once something answers HTTP on the port. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ host: '127.0.0.1', port, path: '/', method: 'GET' }, (response) => {
      response.resume();
      resolve(true);
    });
    probe.on('error', () => resolve(false));
    probe.end();
  });
}

/**
 * A server as a child process. What it receives can only be seen by a tap in front of it: `requests` and `calls` stay
 * empty.
 */
export async function startChild(name: string, commandFor: (port: number) => ChildCommand): Promise<Peer> {
  const port = await freePort();
  const { command, args, env } = commandFor(port);
  let child: ChildProcess | undefined;
  const peer: Peer = {
    name,
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    requests: [],
    calls: [],
    async start() {
      if (child) return;
      const started = spawn(command, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
      child = started;
      killAtExit(started);
      try {
        await until(
          () => {
            if (started.exitCode !== null) throw new Error(`${name} exited: ${started.exitCode}`);
            return answers(port);
          },
          `${name} to listen`,
          START_MS,
        );
      } catch (error) {
        await peer.stop();
        throw error;
      }
    },
    async stop() {
      const running = child;
      child = undefined;
      if (!running || running.exitCode !== null || running.signalCode !== null) return;
      const exited = once(running, 'exit');
      running.kill('SIGKILL');
      await exited;
    },
    async restart() {
      await peer.stop();
      await peer.start();
    },
    close: () => peer.stop(),
    sessions: () => 0,
    announce: {
      toolsChanged: nobody,
      promptsChanged: nobody,
      resourcesChanged: nobody,
      resourceUpdated: nobody,
    },
  };
  await peer.start();
  return peer;
}
