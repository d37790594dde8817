import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { BodyCollector } from '../transports/collector.js';
import { TransportError } from '../transports/errors.js';

/** A request body that is not taken, with the HTTP status that says why. */
export class BodyRefused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** As long as a client may go on sending a body that nobody wants. */
const DISCARD_MS = 2_000;

const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & { destroy(): void }>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Reads a request's body.
 * @param limit greatest length in bytes, after decoding
 * @throws BodyRefused 413 above the limit, 415 for an unknown `Content-Encoding`, 400 for a broken body
 */
export function readBody(req: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  if (encoding === undefined || encoding === 'identity')
    return collect(req, limit, req.headers['content-length']);
  const open = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (open === undefined)
    return Promise.reject(new BodyRefused(415, `Unsupported Content-Encoding: ${encoding}`));
  const decoder = open() as unknown as Transform;
  // A connection that breaks does not end what it is piped into.
  req.on('close', () => {
    if (!req.complete) decoder.destroy();
  });
  return collect(req.pipe(decoder), limit, undefined).finally(() => {
    req.unpipe(decoder);
    decoder.destroy();
  });
}

/**
 * Reads what is left of a body that was refused, and throws it away: a client that is still sending would see its
 * connection reset, and never the answer. One that goes on for long is cut off.
 */
export function discardBody(req: IncomingMessage): void {
  req.resume();
  if (req.complete) return;
  const timer = setTimeout(() => req.destroy(), DISCARD_MS).unref();
  req.once('close', () => clearTimeout(timer));
}

function collect(stream: Readable, limit: number, announced: string | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let body: BodyCollector;
    try {
      body = new BodyCollector(limit, announced);
    } catch {
      reject(tooLarge(limit));
      return;
    }
    const onData = (chunk: Buffer): void => {
      try {
        body.push(chunk);
      } catch (error) {
        stream.off('data', onData);
        reject(error instanceof TransportError ? tooLarge(limit) : error);
      }
    };
    stream.on('data', onData);
    let ended = false;
    stream.on('end', () => {
      ended = true;
      resolve(body.take());
    });
    stream.on('error', (error) =>
      reject(new BodyRefused(400, `The body could not be read: ${error.message}`)),
    );
    stream.on('close', () => {
      if (!ended) reject(new BodyRefused(400, 'The body ended too early'));
    });
  });
}

function tooLarge(limit: number): BodyRefused {
  return new BodyRefused(413, `Request body larger than ${limit} bytes`);
}
