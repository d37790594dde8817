import {
  type ErrorFrame,
  parseFrame,
  parseLenientFrame,
  type RequestFrame,
  type ResultFrame,
  Rope,
  resultRope,
} from '../../jsonrpc/index.js';
import type { TransportError } from '../errors.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Conversation } from './conversation.js';
import { Call, type CallOwner } from './in-flight-request.js';
import { CANCELLED, factsOf, INITIALIZE, keyOf, paramOf, withId, withParam } from './messages.js';
import type { StdioSession } from './session.js';
import type { SharedRouting } from './shared-routing.js';

const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const NOBODY: ResponseSink = { onHead() {}, onMessage() {}, onEnd() {}, onError() {} };

/**
 * A server of the handshake era that serves the sessions of all callers with one process. The gateway takes part in the
 * handshake itself, for all of them and with no capability, since nothing that the server asked could be told to
 * belong to one of them; each is told what the server said.
 */
export class SharedServer implements CallOwner {
  readonly conversation: Conversation<SharedRouting>;
  /** Who waits for the handshake. */
  readonly #waiting = new Set<Call>();
  #welcome: ResultFrame | undefined;
  readonly #onRefused: () => void;

  /**
   * @param handshake JSON text of the params of `initialize`
   * @param onRefused told when the server answers it with an error
   */
  constructor(conversation: Conversation<SharedRouting>, handshake: string, onRefused: () => void) {
    this.conversation = conversation;
    this.#onRefused = onRefused;
    const frame = parseFrame(
      Buffer.from(`{"jsonrpc":"2.0","id":0,"method":"${INITIALIZE}","params":${handshake}}`),
    );
    conversation.request(
      frame as RequestFrame,
      {
        ...NOBODY,
        onMessage: (message) => this.#onAnswer(parseLenientFrame(message) as ResultFrame | ErrorFrame),
        onError: (error) => this.#fail(error),
      },
      undefined,
    );
  }

  /** A session of a caller; its `initialize` is answered as soon as the server has answered that of the gateway. */
  open(
    frame: RequestFrame,
    id: string,
    sink: ResponseSink,
  ): { session: StdioSession; sent: UpstreamRequest } {
    const session = this.conversation.routing.join(id);
    const about = { id: frame.id, key: '', method: INITIALIZE, facts: factsOf(frame), session };
    const call = new Call(this, sink, about);
    const welcome = this.#welcome;
    if (welcome === undefined) this.#waiting.add(call);
    else queueMicrotask(() => call.answer(withId(welcome, call.id, false), 'result'));
    return { session, sent: call };
  }

  /** A request of a session. */
  request(frame: RequestFrame, sink: ResponseSink, session: StdioSession): UpstreamRequest {
    if (this.conversation.routing.note(session, frame))
      return this.conversation.request(frame, sink, session);
    const about = { id: frame.id, key: '', method: frame.method, facts: factsOf(frame), session };
    const call = new Call(this, sink, about);
    queueMicrotask(() => call.answer(resultRope(frame.id, new Rope().push('{}')).toBuffer(), 'result'));
    return call;
  }

  /** A message of a session without a response: of these only cancellations are the server's business. */
  post(message: Rope, sink: ResponseSink, session: StdioSession): UpstreamRequest | undefined {
    const frame = parseLenientFrame(message.toBuffer());
    const given =
      frame.type === 'notification' && frame.method === CANCELLED ? paramOf(frame, 'requestId') : undefined;
    if (given === undefined || frame.type !== 'notification') return undefined;
    for (const call of this.conversation.calls.values()) {
      if (call.session !== session || keyOf(call.id) !== keyOf(given)) continue;
      return this.conversation.post(new Rope().push(withParam(frame, 'requestId', call.key)), sink);
    }
    return undefined;
  }

  /** A session is over: the server need not tell any more of what it alone had subscribed to. */
  leave(session: StdioSession): void {
    for (const uri of this.conversation.routing.leave(session)) {
      const params = `{"uri":${JSON.stringify(uri)}}`;
      const frame = parseFrame(
        Buffer.from(`{"jsonrpc":"2.0","id":0,"method":"resources/unsubscribe","params":${params}}`),
      );
      this.conversation.request(frame as RequestFrame, NOBODY, session);
    }
  }

  /** A caller does not wait for its handshake any longer. */
  abandoned(call: Call): void {
    if (call.session !== undefined && call.isHandshake) this.leave(call.session);
    if (this.#waiting.delete(call) && this.#waiting.size === 0) this.conversation.giveUp();
  }

  lags(): void {}

  #onAnswer(frame: ResultFrame | ErrorFrame): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    if (frame.type === 'error') this.#onRefused();
    else {
      this.#welcome = frame;
      this.conversation.post(new Rope().push(INITIALIZED), NOBODY);
    }
    for (const call of waiting) call.answer(withId(frame, call.id, false), frame.type);
    if (frame.type === 'error') this.conversation.dismiss();
  }

  #fail(error: TransportError): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const call of waiting) call.fail(error);
  }
}
