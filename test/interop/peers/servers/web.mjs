// Serves a handler of web requests with node:http, for servers that leave HTTP to others.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Serves `handle(Request): Response` on a port of 127.0.0.1. */
export function serveWeb(handle, port) {
  createServer(async (incoming, outgoing) => {
    try {
      const body = ['GET', 'HEAD'].includes(incoming.method) ? undefined : Readable.toWeb(incoming);
      const abort = new AbortController();
      outgoing.once('close', () => abort.abort());
      const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method,
        headers: incoming.headers,
        body,
        signal: abort.signal,
        ...(body && { duplex: 'half' }),
      });
      const response = (await handle(request)) ?? new Response(null, { status: 404 });
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.flushHeaders();
      if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing);
      else outgoing.end();
    } catch (error) {
      if (error.code === 'ERR_STREAM_PREMATURE_CLOSE' || error.name === 'AbortError') return;
      console.error(error);
      if (!outgoing.headersSent) outgoing.writeHead(500).end();
    }
  }).listen(port, '127.0.0.1');
}
