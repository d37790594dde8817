import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { BodyCollector } from '../body/body-collector.js';
import { type ContentCoding, contentCoding } from '../body/content-coding.js';
import { LARGE_BODIES } from './turns.js';

/** A request body that is refused, with the HTTP status that says why. */
export class BodyRefused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A body up to this length mostly arrives in one chunk, since the system hands over no more at a time. */
const ONE_CHUNK_BYTES = 64 * 1024;
/** How long a client may go on sending a body that was refused. */
const DISCARD_MS = 2_000;

/** Receives a body that is read. Exactly one callback is called, once. */
export interface BodyReceiver {
  onBody(body: Buffer): void;
  onRefused(error: BodyRefused): void;
}

/**
 * Reads the body of a request. It is refused with 413 above the limit, with 415 for an unknown `Content-Encoding`, with
 * 400 if it cannot be read.
 * @param limit longest body in bytes, after decoding
 */
export function readBody(req: IncomingMessage, limit: number, receiver: BodyReceiver): void {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  if (encoding === undefined || encoding === 'identity') {
    const announced = req.headers['content-length'];
    const length = Number(announced);
    if (length > 0 && length <= Math.min(limit, ONE_CHUNK_BYTES)) collectShort(req, limit, length, receiver);
    else collect(req, limit, { announced }, receiver);
    return;
  }
  const coding = contentCoding(encoding);
  if (coding === undefined)
    receiver.onRefused(new BodyRefused(415, `Unsupported Content-Encoding: ${encoding}`));
  else decode(req, coding, limit, receiver);
}

/** Collects a compressed body, and then unpacks it in a turn of its own: it may be a thousand times as long. */
function decode(req: IncomingMessage, coding: ContentCoding, limit: number, receiver: BodyReceiver): void {
  collect(
    req,
    limit,
    { announced: req.headers['content-length'] },
    {
      onBody: (packed) => LARGE_BODIES.run(() => unpack(packed, coding, limit, receiver)),
      onRefused: (error) => receiver.onRefused(error),
    },
  );
}

function unpack(packed: Buffer, coding: ContentCoding, limit: number, receiver: BodyReceiver): Promise<void> {
  return new Promise((resolve) => {
    const decoder = coding.open(false);
    const done = (): void => {
      decoder.destroy();
      resolve();
    };
    collect(decoder, limit, NOTHING_KNOWN, {
      onBody: (body) => {
        done();
        receiver.onBody(body);
      },
      onRefused: (error) => {
        done();
        receiver.onRefused(error);
      },
    });
    decoder.end(packed);
  });
}

/**
 * Responds to a request whose body is refused, and discards the rest of the body: a client that is still sending would
 * see its connection reset instead of the response. Where the connection closes after the response, that waits for the
 * end of the body. After {@link DISCARD_MS} it waits no longer.
 */
export function refuseBody(req: IncomingMessage, respond: () => void): void {
  req.resume();
  let waiting = !req.complete && closesAfterwards(req);
  if (!waiting) respond();
  if (req.complete) return;
  const respondLate = (): void => {
    if (waiting) respond();
    waiting = false;
  };
  const timer = setTimeout(() => {
    if (waiting) respondLate();
    else req.destroy();
  }, DISCARD_MS).unref();
  req.once('end', respondLate);
  req.once('close', () => clearTimeout(timer));
}

/**
 * Reads a body that most likely arrives in one chunk. Then nothing else has to be waited for: the listeners for the end
 * of a stream and for its errors cost time, and are for bodies of several chunks only.
 */
function collectShort(req: IncomingMessage, limit: number, length: number, receiver: BodyReceiver): void {
  const onFirst = (chunk: Buffer): void => {
    if (chunk.length === length) {
      receiver.onBody(chunk);
      return;
    }
    req.off('data', onFirst);
    collect(req, limit, { first: chunk }, receiver);
  };
  req.on('data', onFirst);
}

function closesAfterwards({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.0' || /\bclose\b/i.test(headers.connection ?? '');
}

/** What is known of a body before it is collected. */
interface Known {
  /** Value of `Content-Length`. */
  readonly announced?: string | undefined;
  /** The chunk that was read already. */
  readonly first?: Buffer;
}

const NOTHING_KNOWN: Known = {};

function collect(stream: Readable, limit: number, { announced, first }: Known, receiver: BodyReceiver): void {
  let body: BodyCollector;
  try {
    body = new BodyCollector(limit, announced);
  } catch {
    receiver.onRefused(tooLarge(limit));
    return;
  }
  let ended = false;
  const refuse = (error: BodyRefused): void => {
    ended = true;
    stream.off('data', onData);
    receiver.onRefused(error);
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
    receiver.onBody(body.take());
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
