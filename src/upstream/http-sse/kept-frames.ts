import type { Frame } from '../../jsonrpc/index.js';

const MAX_FRAMES = 64;
const MAX_BYTES = 1024 * 1024;

/** Keeps messages until the standalone stream is opened. At the limit the oldest are dropped. */
export class KeptFrames {
  #frames: Frame[] = [];
  #bytes = 0;

  push(frame: Frame): void {
    this.#frames.push(frame);
    this.#bytes += lengthOf(frame);
    while (this.#frames.length > MAX_FRAMES || this.#bytes > MAX_BYTES) {
      this.#bytes -= lengthOf(this.#frames.shift() as Frame);
    }
  }

  /** Removes and returns all messages, the oldest first. */
  drain(): readonly Frame[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }
}

function lengthOf({ root }: Frame): number {
  return root.end - root.start;
}
