import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { freePort, until } from '../net.js';
import type { Peer } from './peer.js';

const nobody = () => {};

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
 * `@modelcontextprotocol/server-everything` over Streamable HTTP as a child process. What it receives can only be seen
 * by a tap in front of it: `requests` and `calls` stay empty.
 */
export async function startEverything(): Promise<Peer> {
  const script = createRequire(import.meta.url)
    .resolve('@modelcontextprotocol/server-everything/package.json')
    .replace(/package\.json$/, 'dist/index.js');
  const port = await freePort();
  let child: ChildProcess | undefined;
  const peer: Peer = {
    name: 'server-everything',
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    requests: [],
    calls: [],
    async start() {
      if (child) return;
      const started = spawn(process.execPath, [script, 'streamableHttp'], {
        env: { ...process.env, PORT: String(port) },
        stdio: 'ignore',
      });
      child = started;
      process.once('exit', () => started.kill('SIGKILL'));
      await until(
        () => {
          if (started.exitCode !== null) throw new Error(`server-everything exited: ${started.exitCode}`);
          return answers(port);
        },
        'server-everything to listen',
        20_000,
      );
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
