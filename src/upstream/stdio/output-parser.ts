import { type Frame, FrameError, parseLenientFrames, toValidUtf8 } from '../../jsonrpc/index.js';
import { INVALID_UTF8 } from '../read-frames.js';

export interface OutputHandlers {
  /** The messages of one line. */
  onFrames(frames: readonly Frame[]): void;
  /** A line that is not a message. */
  onSkipped(line: Buffer): void;
  /** The process writes no messages at all: it is not an MCP server. */
  onNoMessages(): void;
  reportDeviation(what: string): void;
}

/** Lines in a row that are not messages before the process is taken for no MCP server. */
const MAX_SKIPPED = 100_000;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Parses the lines of standard output. Servers write other text there too, which is skipped. */
export class OutputParser {
  readonly #handlers: OutputHandlers;
  #skippedInARow = 0;

  constructor(handlers: OutputHandlers) {
    this.#handlers = handlers;
  }

  push(line: Buffer): void {
    const first = firstByte(line);
    if (first === undefined) return;
    const frames = first === OPEN_BRACE || first === OPEN_BRACKET ? this.#parse(line) : undefined;
    if (frames !== undefined) {
      this.#skippedInARow = 0;
      this.#handlers.onFrames(frames);
      return;
    }
    this.#handlers.onSkipped(line);
    if (++this.#skippedInARow > MAX_SKIPPED) this.#handlers.onNoMessages();
  }

  #parse(line: Buffer): readonly Frame[] | undefined {
    const { bytes, replaced } = toValidUtf8(line);
    try {
      const frames = parseLenientFrames(bytes);
      if (replaced) this.#handlers.reportDeviation(INVALID_UTF8);
      return frames;
    } catch (error) {
      if (error instanceof FrameError) return undefined;
      throw error;
    }
  }
}

/** The first byte that is neither white space nor part of a byte order mark. */
function firstByte(line: Buffer): number | undefined {
  for (const byte of line) if (byte > 0x20 && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) return byte;
  return undefined;
}
