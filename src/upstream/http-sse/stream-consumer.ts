import type { Frame } from '../../jsonrpc/index.js';

/** Receives messages from the event stream of a session: a posted request, or the reader of the standalone stream. */
export interface StreamConsumer {
  /** Set while it is slow and others wait for the stream: it then misses notifications. */
  dropsNotifications: boolean;
  take(frame: Frame): void;
}
