import { type Batch, type Frame, FrameError, INVALID_REQUEST, PARSE_ERROR } from './frame.js';
import { skipSpace } from './grammar.js';
import { type JsonNode, JsonSyntaxError, scanJson } from './json.js';
import { eachElement } from './lookup.js';
import { readFrame, type Strictness } from './read-frame.js';

/** Levels of objects whose members are recorded: the message, and its params, result or error. */
const RECORDED_LEVELS = 2;

/** A batch with more messages than this is refused as a whole. */
export const MAX_BATCH_ITEMS = 1000;

/**
 * Parses a message or a batch (JSON-RPC 2.0, section 6). An invalid message in a batch does not affect the others: it is
 * in the batch as its error.
 *
 * @throws FrameError if the body is not JSON, not a message, or a batch that is empty or too large
 */
export function parseBody(bytes: Buffer): Frame | Batch {
  const root = scan(bytes, 0, bytes.length);
  return root.kind === 'array'
    ? { type: 'batch', items: readBatch(bytes, root, 'strict') }
    : readFrame(bytes, root, 'strict');
}

/**
 * Parses one message that has to follow JSON-RPC 2.0. Unknown members of the envelope are accepted.
 *
 * @throws FrameError if it does not
 */
export function parseFrame(bytes: Buffer, start = 0, end = bytes.length): Frame {
  return readFrame(bytes, scan(bytes, start, end), 'strict');
}

/**
 * Parses one message of a backend. Common deviations in responses are accepted, since a caller waits for the response:
 * the id may be anything or missing (a string or a number is kept, all else is undefined), `error: null` beside a result
 * and `result: null` beside an error are ignored, the error may be a bare string, its code may be missing (0) and so may
 * its message ('').
 *
 * @throws FrameError if it is not a message even so
 */
export function parseLenientFrame(bytes: Buffer, start = 0, end = bytes.length): Frame {
  return readFrame(bytes, scan(bytes, start, end), 'lenient');
}

/**
 * Parses all messages in what a backend has sent: one, or those of an array, since some servers respond with arrays to
 * single requests. An invalid message in an array is skipped, so that the callers of the others get theirs. Each frame has
 * a buffer of its own without anything around it, so that it can be passed on as a whole.
 *
 * @throws FrameError if there is no valid message; it is the error of the first
 */
export function parseLenientFrames(bytes: Buffer): Frame[] {
  const text = trimSpace(bytes);
  const root = scan(text, 0, text.length);
  if (root.kind !== 'array') return [readFrame(text, root, 'lenient')];
  const items = readBatch(text, root, 'lenient');
  const frames = items.filter((item): item is Frame => !(item instanceof FrameError));
  if (frames.length === 0) throw items[0];
  return frames;
}

function trimSpace(bytes: Buffer): Buffer {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const start = skipSpace(bytes, hasMark ? 3 : 0, bytes.length);
  let end = bytes.length;
  while (end > start && skipSpace(bytes, end - 1, end) === end) end--;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

function scan(bytes: Buffer, start: number, end: number): JsonNode {
  try {
    return scanJson(bytes, RECORDED_LEVELS, start, end);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new FrameError(PARSE_ERROR, error.message);
    throw error;
  }
}

function readBatch(bytes: Buffer, root: JsonNode, strictness: Strictness): (Frame | FrameError)[] {
  const items: (Frame | FrameError)[] = [];
  for (const element of eachElement(bytes, root)) {
    if (items.length === MAX_BATCH_ITEMS)
      throw new FrameError(INVALID_REQUEST, `A batch may hold ${MAX_BATCH_ITEMS} messages at most`);
    const own = bytes.subarray(element.start, element.end);
    try {
      items.push(readFrame(own, scan(own, 0, own.length), strictness));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      items.push(error);
    }
  }
  if (items.length === 0) throw new FrameError(INVALID_REQUEST, 'A batch must hold at least one message');
  return items;
}
