import { isEventStream, isJson } from '../body/media-type.js';
import type { BodyOwner, BodyReader } from './body-reader.js';
import { DecodingReader } from './decoding-reader.js';
import { EventReader, JsonReader, TextReader } from './plain-readers.js';
import type { ResponseHeaders } from './response-headers.js';

/**
 * Opens the reader that fits a response.
 * @throws TransportError for an announced length above the limit, and an unknown `Content-Encoding`
 */
export function openBody(status: number, headers: ResponseHeaders, owner: BodyOwner): BodyReader {
  const reader = plainReader(status, headers, owner);
  const stated = headers['content-encoding'];
  if (stated === undefined) return reader;
  const encoding = String(stated).trim().toLowerCase();
  return NO_CODING.test(encoding) ? reader : new DecodingReader(encoding, reader, owner);
}

/** Values of `Content-Encoding` from servers that do not compress: no coding, or a value of another header. */
const NO_CODING = /^(identity|none|utf-?8|binary|[78]bit|chunked)?$/;

function plainReader(status: number, headers: ResponseHeaders, { limit, sink }: BodyOwner): BodyReader {
  // 202 and 204 have no body; the Python SDK labels its empty 202 as JSON.
  if (status !== 202 && status !== 204) {
    if (isJson(headers['content-type'])) {
      const announced = headers['content-encoding'] === undefined ? headers['content-length'] : undefined;
      return new JsonReader(limit, typeof announced === 'string' ? announced : undefined, sink);
    }
    if (isEventStream(headers['content-type'])) return new EventReader(limit, sink);
  }
  return new TextReader();
}
