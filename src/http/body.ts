import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
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
  const open = DECODERS[encoding];
  if (open === undefined)
    return Promise.reject(new BodyRefused(415, `Unsupported Content-Encoding: ${encoding}`));
  return collect(req.pipe(open()) as unknown as Readable, limit, undefined);
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
    stream.on('data', (chunk: Buffer) => {
      try {
        body.push(chunk);
      } catch (error) {
        stream.pause();
        reject(error instanceof TransportError ? tooLarge(limit) : error);
      }
    });
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
