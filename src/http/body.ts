import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { BodyCollector } from '../body/body-collector.js';
import { contentCoding } from '../body/content-coding.js';

/** A request body that is not taken, with the HTTP status that says why. */
export class BodyRefused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Up to this length in bytes a body is waited for as one chunk; what the system hands over at a time is no longer. */
const ONE_CHUNK = 64 * 1024;
/** As long as a client may go on sending a body that nobody wants. */
const DISCARD_MS = 2_000;

/** Is told how the reading of a body ended: one of the two, once. */
export interface BodyTaker {
  onBody(body: Buffer): void;
  onRefused(error: BodyRefused): void;
}

/**
 * Reads a request's body. It is refused with 413 above the limit, with 415 for an unknown `Content-Encoding`, with 400
 * when it is broken.
 * @param limit greatest length in bytes, after decoding
 */
export function readBody(req: IncomingMessage, limit: number, taker: BodyTaker): void {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  if (encoding === undefined || encoding === 'identity') {
    const announced = req.headers['content-length'];
    const length = Number(announced);
    if (length > 0 && length <= Math.min(limit, ONE_CHUNK)) collectShort(req, limit, length, taker);
    else collect(req, limit, announced, taker);
    return;
  }
  const coding = contentCoding(encoding);
  if (coding === undefined)
    taker.onRefused(new BodyRefused(415, `Unsupported Content-Encoding: ${encoding}`));
  else decode(req, coding.open(false), limit, taker);
}

function decode(req: IncomingMessage, decoder: Transform, limit: number, taker: BodyTaker): void {
  const stop = (): void => {
    req.unpipe(decoder);
    decoder.destroy();
  };
  // A connection that breaks does not end what it is piped into.
  req.on('close', () => {
    if (!req.complete) decoder.destroy();
  });
  collect(req.pipe(decoder), limit, undefined, {
    onBody: (body) => {
      stop();
      taker.onBody(body);
    },
    onRefused: (error) => {
      stop();
      taker.onRefused(error);
    },
  });
}

/**
 * Answers a request whose body is not wanted, and throws away what is left of it: a client that is still sending would
 * see its connection reset, and never the answer. For the same reason the answer waits for the end of the body where
 * the connection ends with it. A body that goes on for long is cut off.
 */
export function refuseBody(req: IncomingMessage, answer: () => void): void {
  req.resume();
  let waiting = !req.complete && closesAfterwards(req);
  if (!waiting) answer();
  if (req.complete) return;
  const answerLate = (): void => {
    if (waiting) answer();
    waiting = false;
  };
  const timer = setTimeout(() => {
    if (waiting) answerLate();
    else req.destroy();
  }, DISCARD_MS).unref();
  req.once('end', answerLate);
  req.once('close', () => clearTimeout(timer));
}

/**
 * A body that most likely comes in one chunk, which is then all that there is to wait for: the end of the stream, its
 * failure and its close each cost a listener, and are left to those bodies that take longer.
 */
function collectShort(req: IncomingMessage, limit: number, length: number, taker: BodyTaker): void {
  const onFirst = (chunk: Buffer): void => {
    if (chunk.length === length) {
      taker.onBody(chunk);
      return;
    }
    req.off('data', onFirst);
    collect(req, limit, undefined, taker, chunk);
  };
  req.on('data', onFirst);
}

function closesAfterwards({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.0' || /\bclose\b/i.test(headers.connection ?? '');
}

/** @param first what has been read already */
function collect(
  stream: Readable,
  limit: number,
  announced: string | undefined,
  taker: BodyTaker,
  first?: Buffer,
): void {
  let body: BodyCollector;
  try {
    body = new BodyCollector(limit, announced);
  } catch {
    taker.onRefused(tooLarge(limit));
    return;
  }
  let ended = false;
  const refuse = (error: BodyRefused): void => {
    ended = true;
    stream.off('data', onData);
    taker.onRefused(error);
  };
  const onData = (chunk: Buffer): void => {
    try {
      body.push(chunk);
    } catch {
      refuse(tooLarge(limit));
    }
  };
  if (first !== undefined) onData(first);
  stream.on('data', onData);
  stream.on('end', () => {
    if (ended) return;
    ended = true;
    taker.onBody(body.take());
  });
  stream.on('error', (error) => {
    if (!ended) refuse(new BodyRefused(400, `The body could not be read: ${error.message}`));
  });
  stream.on('close', () => {
    if (!ended) refuse(new BodyRefused(400, 'The body ended too early'));
  });
}

function tooLarge(limit: number): BodyRefused {
  return new BodyRefused(413, `Request body larger than ${limit} bytes`);
}
