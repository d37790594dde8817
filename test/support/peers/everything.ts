import { createRequire } from 'node:module';
import { startChild } from './child.js';
import type { Peer } from './peer.js';

/** `@modelcontextprotocol/server-everything` over Streamable HTTP, or over HTTP+SSE. */
export async function startEverything(transport: 'streamableHttp' | 'sse' = 'streamableHttp'): Promise<Peer> {
  const script = createRequire(import.meta.url)
    .resolve('@modelcontextprotocol/server-everything/package.json')
    .replace(/package\.json$/, 'dist/index.js');
  const peer = await startChild('server-everything', (port) => ({
    command: process.execPath,
    args: [script, transport],
    env: { PORT: String(port) },
  }));
  return transport === 'sse' ? { ...peer, url: new URL('/sse', peer.url).href } : peer;
}
