import { createServer } from 'node:net';

/**
 * A loopback port for a child process that cannot choose one itself. It is none of those that the system gives out (32768 and up on
 * Linux), so that nothing else takes it before the child does.
 */
export async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
