// Many clients that listen for changes, each on a connection of its own. Bare sockets: thousands of them live in one
// process and should take little of the time until a change has reached all.

import { connect } from 'node:net';
import { CHANGE_END, GET_HEADERS, LISTEN } from './list-messages.mjs';
import { openSessions } from './load.mjs';

const OPENING_AT_ONCE = 50;
const PATIENCE_MS = 60_000;

const HEAD = 'HTTP/1.1 200 ';
const ACKNOWLEDGED = 'subscriptions/acknowledged';
const HEAD_END = '\r\n\r\n';

function requestText(method, { pathname, host }, headers, body = '') {
  const all = { host, ...headers, ...(body && { 'content-length': body.length }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** The kinds of streams: `prepare` gives what each of so many needs for itself, `request` the text that opens one. */
export const KINDS = {
  listen: {
    prepare: (_url, count) => Array.from({ length: count }, (_, id) => id),
    request: (url, id) => requestText('POST', url, LISTEN.headers, LISTEN.body(id)),
    open: ACKNOWLEDGED,
  },
  get: {
    prepare: ({ origin, pathname }, count) => openSessions(origin, pathname, count),
    request: (url, session) => requestText('GET', url, { ...GET_HEADERS, 'mcp-session-id': session }),
    open: HEAD_END,
  },
};

/** Calls `found` for each time that `mark` goes by in the chunks that it is given, wherever they are cut. */
function lookFor(mark, found) {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    let from = 0;
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, from)) {
      from = at + mark.length;
      found();
    }
    // A copy: a part of the chunk would keep all of it.
    rest = Buffer.from(bytes.subarray(Math.max(from, bytes.length - mark.length + 1)));
  };
}

export class Fleet {
  #sockets = [];
  #missing = 0;
  #onAll;
  #onFailure;
  #failure;

  get size() {
    return this.#sockets.length;
  }

  /** Opens `count` streams of a kind at `url`. */
  async open(kind, url, count) {
    const target = new URL(url);
    const places = await kind.prepare(target, count);
    const opener = async () => {
      while (places.length > 0) await this.#stream(target, kind, places.pop());
    };
    await Promise.all(Array.from({ length: OPENING_AT_ONCE }, opener));
  }

  /** Milliseconds from `announce()` until every stream has heard of one more change. */
  async reach(announce) {
    if (this.#failure) throw this.#failure;
    let timer;
    const all = new Promise((resolve, reject) => {
      this.#missing = this.size;
      this.#onAll = resolve;
      this.#onFailure = reject;
      const late = () => reject(new Error(`${this.#missing} of ${this.size} streams heard of no change`));
      timer = setTimeout(late, PATIENCE_MS);
    });
    const started = performance.now();
    announce();
    await all.finally(() => clearTimeout(timer));
    return performance.now() - started;
  }

  /** Reads nothing more on any of the streams. */
  stall() {
    for (const socket of this.#sockets) socket.removeAllListeners('data').pause();
  }

  close() {
    this.#onFailure = undefined;
    for (const socket of this.#sockets) socket.removeAllListeners('close').destroy();
    this.#sockets = [];
  }

  #fail(error) {
    this.#failure ??= error;
    this.#onFailure?.(error);
  }

  #told() {
    this.#missing -= 1;
    if (this.#missing === 0) this.#onAll();
  }

  #stream(url, kind, place) {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(url.port), url.hostname);
      let head = '';
      const onChange = lookFor(CHANGE_END, () => this.#told());
      const opening = (chunk) => {
        head += chunk.latin1Slice();
        if (!head.startsWith(HEAD)) return reject(new Error(`a stream was not opened: ${head}`));
        if (!head.includes(kind.open)) return;
        head = '';
        socket.off('data', opening).on('data', onChange);
        this.#sockets.push(socket);
        resolve();
      };
      socket.on('data', opening);
      socket.on('error', reject);
      socket.on('close', () => {
        const error = new Error('a stream ended by itself');
        reject(error);
        this.#fail(error);
      });
      socket.write(kind.request(url, place));
    });
  }
}
