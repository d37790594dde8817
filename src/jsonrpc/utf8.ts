import { isUtf8 } from 'node:buffer';

/**
 * The bytes if they are valid UTF-8, else a copy in which every invalid sequence is U+FFFD, as the Encoding
 * Standard's decoder has it. JSON is UTF-8 (RFC 8259, section 8.1), but what a backend read from a file may not be.
 */
export function toValidUtf8(bytes: Buffer): { bytes: Buffer; replaced: boolean } {
  if (isUtf8(bytes)) return { bytes, replaced: false };
  return { bytes: Buffer.from(bytes.toString('utf8')), replaced: true };
}
