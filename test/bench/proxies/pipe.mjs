// The floor: as little as an HTTP/1.1 proxy on node:http and undici can do and still be one. Hop-by-hop headers go, all
// else passes; response bodies stream with backpressure; a client that leaves takes its backend request with it.
//
// Of the ways to write it, this is the cheapest one for small messages. Each of these costs more CPU per request: the
// request body as a stream into `dispatch` and header objects instead of raw lists a few per cent each, `pool.stream`
// some 15 %, `pool.request` with `body.pipe` more than that, `pool.pipeline` over twice as much. So a small request body
// of known length is collected and leaves in one write with its headers; any other is streamed.

import { createServer } from 'node:http';
import { Pool } from 'undici';
import { reportListening } from '../listening.mjs';

const COLLECT_BYTES = 64 * 1024;

// RFC 9110, section 7.6.1; `host` is the backend's own, which undici writes.
const NOT_FORWARDED = new Set([
  'connection',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const pool = new Pool(process.argv[2], { connections: 128, pipelining: 1 });

function requestHeaders(raw) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (!NOT_FORWARDED.has(raw[i].toLowerCase())) kept.push(raw[i], raw[i + 1]);
  }
  return kept;
}

function responseHeaders(raw) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].latin1Slice();
    if (!NOT_FORWARDED.has(name.toLowerCase())) kept.push(name, raw[i + 1].latin1Slice());
  }
  return kept;
}

/** Writes a backend's response to the client. undici's older handler interface, which hands over headers unparsed. */
class Forward {
  #res;
  #resume;

  constructor(res) {
    this.#res = res;
  }
  onConnect(abort) {
    this.#res.on('close', () => {
      if (!this.#res.writableFinished) abort();
    });
  }
  onHeaders(status, raw, resume) {
    this.#res.writeHead(status, responseHeaders(raw));
    this.#resume = resume;
    return true;
  }
  onData(chunk) {
    if (this.#res.write(chunk)) return true;
    this.#res.once('drain', this.#resume);
    return false;
  }
  onComplete() {
    this.#res.end();
  }
  onError() {
    if (this.#res.headersSent) return this.#res.destroy();
    this.#res.writeHead(502).end();
  }
}

function forward(req, res, body) {
  const headers = requestHeaders(req.rawHeaders);
  pool.dispatch({ method: req.method, path: req.url, headers, body }, new Forward(res));
}

const server = createServer((req, res) => {
  // No length, or a long one: NaN compares false as well.
  if (!(Number(req.headers['content-length']) <= COLLECT_BYTES)) return forward(req, res, req);
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => forward(req, res, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
});
// Proxies idle while the others have their rounds; their connections should survive that.
server.keepAliveTimeout = 120_000;
reportListening(server);
