import { createRequire } from 'node:module';
import { startChild } from './child.js';
import type { Peer } from './peer.js';

/** `@modelcontextprotocol/server-everything` over Streamable HTTP. */
export function startEverything(): Promise<Peer> {
  const script = createRequire(import.meta.url)
    .resolve('@modelcontextprotocol/server-everything/package.json')
    .replace(/package\.json$/, 'dist/index.js');
  return startChild('server-everything', (port) => ({
    command: process.execPath,
    args: [script, 'streamableHttp'],
    env: { PORT: String(port) },
  }));
}
