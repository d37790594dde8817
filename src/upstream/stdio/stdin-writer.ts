import type { Writable } from 'node:stream';
import type { Rope } from '../../jsonrpc/index.js';

interface QueuedMessage {
  readonly body: Rope;
  readonly onWritten: (() => void) | undefined;
  /** The process may have read the whole line. */
  mayBeRead: boolean;
}

/** Writes messages to the standard input of a process, one per line, in order and under backpressure. */
export class StdinWriter {
  readonly #stdin: Writable;
  readonly #queue: QueuedMessage[] = [];
  #full = false;

  constructor(stdin: Writable) {
    this.#stdin = stdin;
    stdin.on('drain', () => {
      this.#full = false;
      this.#flush();
    });
  }

  /**
   * Writes a message, without raw line breaks, and a line break.
   * @param onWritten called once the process can read it
   * @returns withdraws the message; false if the process may have read it
   */
  write(body: Rope, onWritten?: () => void): () => boolean {
    const message: QueuedMessage = { body, onWritten, mayBeRead: false };
    this.#queue.push(message);
    this.#flush();
    return () => {
      const at = this.#queue.indexOf(message);
      if (at !== -1) this.#queue.splice(at, 1);
      return !message.mayBeRead;
    };
  }

  /** Drops the messages that are not begun, and ends standard input. */
  close(): void {
    this.drop();
    this.#stdin.end();
  }

  /** Drops the messages that are not begun. */
  drop(): void {
    this.#queue.length = 0;
  }

  #flush(): void {
    while (!this.#full) {
      const message = this.#queue.shift();
      if (message === undefined) return;
      message.mayBeRead = true;
      this.#stdin.cork();
      for (const chunk of message.body.chunks) this.#stdin.write(chunk);
      this.#full = !this.#stdin.write('\n', (error) => {
        // The process closed its end before it got the whole line.
        if (error) message.mayBeRead = false;
        else message.onWritten?.();
      });
      this.#stdin.uncork();
    }
  }
}
