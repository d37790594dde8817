import type { Rope } from '../jsonrpc/index.js';
import type { Recorder } from './replay-stream.js';
import type { Headers } from './response-writer.js';

/**
 * The response to one client request, as the eras write it: one JSON body, or an event stream that carries what comes
 * before the outcome too.
 */
export interface ClientResponse {
  /** The HTTP status that was sent; 0 before. */
  readonly status: number;
  /** Nothing more can be written: the response has ended, or was aborted. */
  readonly done: boolean;
  /** The client closed the connection before the response ended, and cannot resume the stream. */
  readonly aborted: boolean;
  /** Whether the client can receive an event: it is connected, or knows to reconnect. */
  readonly reachable: boolean;
  /** Whether the client accepts an event stream. */
  readonly acceptsEvents: boolean;
  /** Whether the response has become an event stream. */
  readonly streaming: boolean;

  /** Calls `listener` when the response is aborted: at once if it is already. */
  onAbort(listener: () => void): void;
  offAbort(listener: () => void): void;

  /**
   * Writes a message as an event; ignored where the client accepts none.
   * @returns false when the client reads slowly: the caller should wait for {@link ClientResponse.onDrain}
   */
  writeEvent(message: Rope): boolean;
  /** Calls `resume` once the client has read what was written, or can read nothing more. */
  onDrain(resume: () => void): void;

  /**
   * From now on a slow response becomes a stream. Before, while the request is still being read and checked, its status
   * is not known.
   */
  allowStream(): void;
  /**
   * Has the events recorded, if the response becomes a stream, so that a client can resume it.
   * @param holdMs longest time that one connection is held for a client that can resume, in milliseconds
   */
  makeResumable(recorder: Recorder, holdMs?: number): void;
  /**
   * Closes the connection in the middle of a stream that the client knows how to resume
   * (basic/transports, "Sending Messages to the Server"). Does nothing where it was not.
   */
  detach(): void;

  /** Writes the outcome and ends the response. */
  end(status: number, message: Rope, headers?: Headers): void;
  /** Writes the outcomes of a batch and ends the response: as events on an open stream, else as an array. */
  endBatch(messages: readonly Rope[]): void;
  /** Ends a response that has no message. */
  endEmpty(status: number, headers?: Headers): void;
}
