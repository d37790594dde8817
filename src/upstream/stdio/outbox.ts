import type { Rope } from '../../jsonrpc/index.js';
import type { TransportError } from '../errors.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Child } from './child.js';
import { asLine } from './messages.js';

/** Limit of messages of the gateway's own that the process has not read; one that leaves more does not read at all. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** Memory that a message takes beside its text. */
const OVERHEAD_BYTES = 256;

/** Sends a process the messages that get no response. */
export class Outbox {
  readonly #child: Child;
  readonly #onFull: () => void;
  /** Sinks of messages that are not written yet. */
  readonly #posts = new Set<ResponseSink>();
  #unreadBytes = 0;

  /** @param onFull the process does not read its standard input */
  constructor(child: Child, onFull: () => void) {
    this.#child = child;
    this.#onFull = onFull;
  }

  /** Sends a message of a caller; the sink gets status 202 once it is written. */
  post(message: Rope, sink: ResponseSink): UpstreamRequest {
    this.#posts.add(sink);
    const withdraw = this.#child.write(asLine(message), () => {
      if (!this.#posts.delete(sink)) return;
      sink.onHead(202, {});
      sink.onEnd('');
    });
    return {
      abort: () => {
        if (this.#posts.delete(sink)) withdraw();
      },
      waitFor() {},
    };
  }

  /** Sends a message of the gateway's own, such as the answer to a ping. */
  write(message: Rope): void {
    const bytes = message.byteLength + OVERHEAD_BYTES;
    this.#unreadBytes += bytes;
    this.#child.write(asLine(message), () => {
      this.#unreadBytes -= bytes;
    });
    if (this.#unreadBytes > MAX_UNREAD_BYTES) this.#onFull();
  }

  /** Fails the messages that are not written yet. */
  fail(error: TransportError): void {
    for (const sink of [...this.#posts]) if (this.#posts.delete(sink)) sink.onError(error);
  }
}
