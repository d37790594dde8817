import type { Transform } from 'node:stream';
import {
  brotliDecompressSync,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzipSync,
  inflateSync,
} from 'node:zlib';
import { nameMap } from '../jsonrpc/index.js';

/** A value of `Content-Encoding` that can be undone. */
export interface ContentCoding {
  /**
   * @param eager gives out at once what has come, so that no event is held back, and takes a body that is cut off for no
   *   error
   */
  open(eager: boolean): Transform;
  /** @throws Error for what is broken, or is longer than that in bytes when it is unpacked */
  decode(body: Buffer, maxBytes: number): Buffer;
}

const ZLIB = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };

const GZIP: ContentCoding = {
  open: (eager) => createGunzip(eager ? ZLIB : {}),
  decode: (body, maxOutputLength) => gunzipSync(body, { maxOutputLength }),
};

const CODINGS: ReadonlyMap<string, ContentCoding> = nameMap({
  gzip: GZIP,
  'x-gzip': GZIP,
  deflate: {
    open: (eager) => createInflate(eager ? ZLIB : {}),
    decode: (body, maxOutputLength) => inflateSync(body, { maxOutputLength }),
  },
  br: {
    open: (eager) => createBrotliDecompress(eager ? BROTLI : {}),
    decode: (body, maxOutputLength) => brotliDecompressSync(body, { maxOutputLength }),
  },
});

/** @param name in lower case */
export function contentCoding(name: string): ContentCoding | undefined {
  return CODINGS.get(name);
}
