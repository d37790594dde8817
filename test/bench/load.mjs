// The load generator: a closed loop of one request, one request in flight per connection, undici without pipelining.

import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { HANDSHAKE, TOOL_CALL } from './messages.mjs';

export const CONNECTIONS = 32;

// Every answer's status is looked at; of every so many, the frame too.
const CHECK_EVERY = 64;

// A subject's connections last from its first round to its last. New ones for each round would be measured as well: what
// V8 compiled for open sockets it throws away when some of them close, and compiles again.
const KEEP_ALIVE_MS = 120_000;

/** The connections of one subject. */
export const openPool = (origin) =>
  new Pool(origin, {
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });

/** Runs `worker(index)` once for each connection and waits for all of them. */
const onEachConnection = (worker) => Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => worker(i)));

async function post(pool, path, { headers, body }, extra) {
  const answer = await pool.request({ method: 'POST', path, headers: { ...headers, ...extra }, body });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** The headers that carry a session; none where the server keeps none. */
const sessionHeaders = (session) => session && { 'mcp-session-id': session };

/** Opens a legacy session by the full handshake, with `extra` headers; returns its id, undefined where there is none. */
export async function handshake(pool, { path, extra }) {
  const opened = await post(pool, path, HANDSHAKE.initialize, extra);
  if (opened.status !== 200) throw new Error(`initialize: HTTP ${opened.status} ${opened.text}`);
  const session = opened.headers['mcp-session-id'];
  const ready = await post(pool, path, HANDSHAKE.initialized, { ...extra, ...sessionHeaders(session) });
  if (ready.status !== 202) throw new Error(`notifications/initialized: HTTP ${ready.status} ${ready.text}`);
  return session;
}

/** Opens `count` legacy sessions and returns their ids. */
export async function openSessions(origin, path, count, extra) {
  const pool = openPool(origin);
  const ids = [];
  let started = 0;
  await onEachConnection(async () => {
    while (started < count) {
      started += 1;
      ids.push(await handshake(pool, { path, extra }));
    }
  });
  await pool.close();
  return ids;
}

/** One call on its way; settles with the answer's status and text. */
class Call {
  #chunks = [];
  #status = 0;
  #done;

  constructor(done) {
    this.#done = done;
  }
  onRequestStart() {}
  onResponseStart(_controller, status) {
    this.#status = status;
  }
  onResponseData(_controller, chunk) {
    this.#chunks.push(chunk);
  }
  onResponseEnd() {
    this.#done(undefined, this.#status, this.#chunks);
  }
  onResponseError(_controller, error) {
    this.#done(error, 0, this.#chunks);
  }
}

/** The JSON text of an answer, which may have come as the last event of a stream. */
const jsonText = (text) =>
  text.startsWith('{')
    ? text
    : text
        .match(/^data: ?\{.*$/gm)
        ?.at(-1)
        ?.slice(5);

function checkFrame(text, id, era, fits) {
  const frame = JSON.parse(jsonText(text) ?? text);
  const stamped = frame.result?.resultType === 'complete';
  if (frame.id !== id || !fits(frame.result) || stamped !== (era === 'modern'))
    throw new Error(`not the answer to request ${id}: ${text}`);
}

/**
 * Sends `request`, a call of the tool by default, with `extra` headers, for `leadInMs` and then for `measureMs`; `probe` (a function without
 * arguments) is read at both ends of the measured time. `pool` comes from `openPool`. Legacy callers need `sessions`, one
 * for each connection.
 * Returns `{ requests, seconds, latencies, before, after }`; latencies in ms, sorted. Throws on any other answer.
 */
export async function load(subject) {
  const { pool, path, era, request = TOOL_CALL, extra, sessions, leadInMs, measureMs, probe } = subject;
  const { headers, body, fits } = request[era];
  const latencies = [];
  let measuring = false;
  let running = true;
  let lastId = 0;
  let failure;

  const loop = (worker) =>
    new Promise((resolve) => {
      const own = { ...headers, ...extra, ...sessionHeaders(sessions?.[worker]) };
      const next = () => {
        if (!running) return resolve();
        const id = ++lastId;
        const started = performance.now();
        const done = (error, status, chunks) => {
          try {
            if (error) throw error;
            if (status !== 200) throw new Error(`HTTP ${status} ${Buffer.concat(chunks)}`);
            if (id % CHECK_EVERY === 1) checkFrame(Buffer.concat(chunks).toString(), id, era, fits);
          } catch (problem) {
            failure ??= problem;
            running = false;
          }
          if (measuring) latencies.push(performance.now() - started);
          next();
        };
        pool.dispatch({ method: 'POST', path, headers: own, body: body(id) }, new Call(done));
      };
      next();
    });

  const loops = onEachConnection(loop);
  await delay(leadInMs);
  const before = probe();
  const startedAt = performance.now();
  measuring = true;
  await delay(measureMs);
  measuring = false;
  const after = probe();
  const seconds = (performance.now() - startedAt) / 1000;
  running = false;
  await loops;
  if (failure) throw failure;
  return {
    requests: latencies.length,
    seconds,
    latencies: Float64Array.from(latencies).sort(),
    before,
    after,
  };
}
