import type { JsonNode, RequestId } from '../jsonrpc/index.js';
import type { ForwardedHeaders } from './forwarded-headers.js';

/** A message of a server that is not a response, whole and byte for byte. */
export interface ServerMessage {
  readonly method: string;
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

/** A server's request to the client, under the server's own id. */
export interface ServerRequest extends ServerMessage {
  readonly id: RequestId;
  /** In the neutral form, and outside any call: the name by which the client knows the task that sends the request. */
  readonly task?: string;
}

/** The client's answer to a {@link ServerRequest}: the JSON text of `result`, or of `error`. */
export type ClientAnswer = ({ readonly result: Buffer } | { readonly error: Buffer }) & {
  /** Headers that came with the answer, where they may differ from those of the request. */
  readonly forwarded?: ForwardedHeaders;
};

/** Carries a server's messages to the client: those of one exchange, or those of a session outside any exchange. */
export interface Channel {
  /**
   * Sends a notification to the client, unless the client cannot have it.
   * @returns false when the client reads slower than the server writes; see {@link Channel.onDrain}
   */
  notify(message: ServerMessage): boolean;
  /** Calls `resume` once the client has read what was written. */
  onDrain(resume: () => void): void;
  /** False while the client is disconnected from the stream that would carry a server request. */
  readonly reachable?: boolean;
  /** Closes the connection of a client that can resume the stream later. */
  detach?(): void;
  /**
   * Sends a server request to the client and waits for the answer.
   * @throws ServerRequestRefused when the client cannot be asked
   */
  ask(request: ServerRequest): Promise<ClientAnswer>;
}
