import { Rope } from './rope.js';

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** Events up to this size in bytes are flattened first, which is cheaper than searching each chunk. */
const FLAT_BYTES = 64 * 1024;

/**
 * One event with one data line. Line ends of the frame, which valid JSON has only between tokens, become spaces.
 *
 * @param frame JSON text
 * @param fields `event` defaults to `message`; neither value may hold a line end
 */
export function sseEvent(frame: Rope, fields?: { event?: string; id?: string }): Rope {
  const event = new Rope();
  if (fields?.event === undefined) event.push('event: message\n');
  else event.push('event: ').push(fields.event).push('\n');
  if (fields?.id !== undefined) event.push('id: ').push(fields.id).push('\n');
  event.push('data: ');
  if (frame.byteLength > FLAT_BYTES) {
    for (const chunk of frame.chunks)
      event.push(hasLineEnd(chunk) ? blankLineEnds(Buffer.from(chunk)) : chunk);
    return event.push('\n\n');
  }
  event.push(frame).push('\n\n');
  // The fields around the frame make the rope more than one slice, so this buffer is a copy and may be changed.
  const bytes = event.toBuffer();
  const line = bytes.subarray(bytes.length - 2 - frame.byteLength, bytes.length - 2);
  if (hasLineEnd(line)) blankLineEnds(line);
  return event;
}

function hasLineEnd(bytes: Buffer): boolean {
  return bytes.indexOf(LF) !== -1 || bytes.indexOf(CR) !== -1;
}

function blankLineEnds(bytes: Buffer): Buffer {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === LF || bytes[i] === CR) bytes[i] = SPACE;
  return bytes;
}

/** A comment; sent on a quiet stream so that proxies do not close it. @param text must not hold a line end */
export function sseComment(text = ''): string {
  return `:${text === '' ? '' : ` ${text}`}\n\n`;
}
