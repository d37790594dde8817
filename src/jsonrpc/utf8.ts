import { isUtf8 } from 'node:buffer';

/**
 * The bytes if they are valid UTF-8, else a copy with U+FFFD for each invalid sequence, as in the decoder of the Encoding
 * Standard. JSON is UTF-8 (RFC 8259, section 8.1), but servers send files in other encodings as text.
 */
export function toValidUtf8(bytes: Buffer): { bytes: Buffer; replaced: boolean } {
  if (isUtf8(bytes)) return { bytes, replaced: false };
  return { bytes: Buffer.from(bytes.toString('utf8')), replaced: true };
}
