import {
  type ErrorFrame,
  errorRope,
  type Frame,
  FrameError,
  type NotificationFrame,
  parseAnswers,
  type RequestFrame,
  type ResultFrame,
  Rope,
  resultRope,
  toValidUtf8,
} from '../../jsonrpc/index.js';
import type { CatchUp } from '../catch-up.js';
import { TransportError } from '../errors.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { AnswerSink, Transmission } from '../transport.js';
import { Call, type CallOwner, type Recipient } from './call.js';
import { Child, type Command } from './child.js';
import type { ChildLog } from './child-log.js';
import type { OversizedLine } from './line-reader.js';
import {
  asLine,
  CANCELLED,
  factsOf,
  INITIALIZE,
  idAtEnds,
  keyOf,
  LISTEN,
  LOG,
  PROGRESS,
  paramOf,
  renumbered,
  subscriptionOf,
  withId,
  withParam,
  withSubscription,
} from './messages.js';
import { StdioSession } from './session.js';

export interface ConversationOptions {
  readonly command: Command;
  readonly lineBytes: number;
  /** Several callers who do not know of each other speak with the process: their ids and tokens are replaced. */
  readonly shared: boolean;
  readonly log: ChildLog;
  readonly onQuirk: (what: string) => void;
  /** It has answered something for the first time. */
  readonly onProved: () => void;
  /** The process is gone, or never said anything, though nobody wanted that; told once. */
  readonly onGone: (reason: string) => void;
  /** It refused the handshake for which it was started. */
  readonly onRefused: (reason: string) => void;
}

const METHOD_NOT_FOUND = -32601;

/** Everything that is said with one process: who asked what of it, and whom what it says is for. */
export class Conversation implements CallOwner {
  /** It has answered something, so that it can be started and works. */
  proved = false;
  readonly #options: ConversationOptions;
  readonly #child: Child;
  readonly #calls = new Map<string, Call>();
  /** Messages without a response that are on their way. */
  readonly #untold = new Set<AnswerSink>();
  readonly #sessions = new Map<string, StdioSession>();
  #nextId = 1;
  /** Whoever the process is held up for. */
  #heldFor: Recipient | undefined;
  #stopped = false;
  #usedAt = performance.now();
  /** What those who wait are told once the process is gone. */
  #fault: TransportError | undefined;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#child = new Child(options.command, options.lineBytes, {
      onLine: (line) => this.#onLine(line),
      onOversized: (line) => this.#onOversized(line),
      onErrorLine: (line) => options.log.errorLine(line),
      onGone: (reason, started) => this.#onGone(reason, started),
    });
    options.log.started(this.#child.pid);
  }

  /** Nothing can be said any more. */
  get over(): boolean {
    return this.#stopped || this.#child.gone;
  }

  /** Since when it has had nothing to do. */
  get idleSince(): number {
    return this.#calls.size > 0 || this.#sessions.size > 0 ? performance.now() : this.#usedAt;
  }

  /** What comes outside any request is for a session from now on. */
  join(id: string): StdioSession {
    const session = new StdioSession(id, (recipient, catchUp) => this.lags(recipient, catchUp));
    this.#sessions.set(id, session);
    return session;
  }

  leave(session: StdioSession): void {
    this.#sessions.delete(session.id);
    session.end();
  }

  /** @param session the one that the request came on */
  request(frame: RequestFrame, sink: AnswerSink, session: StdioSession | undefined): Call {
    this.#letGo();
    const facts = factsOf(frame);
    const { shared } = this.#options;
    const id = shared ? String(this.#nextId++) : frame.id;
    const stateless = session === undefined;
    const call = new Call(this, sink, {
      id: frame.id,
      key: keyOf(id),
      method: frame.method,
      facts,
      stateless,
    });
    if (this.over) {
      queueMicrotask(() => call.fail(new TransportError('unreachable', 'it has just ended')));
      return call;
    }
    this.#calls.set(call.key, call);
    const body = shared
      ? renumbered(frame, id, facts.progressToken !== undefined)
      : new Rope().push(frame.bytes);
    call.recall = this.#child.write(asLine(body), () => {
      call.recall = undefined;
    });
    return call;
  }

  /** Writes a notification, or the answer to a question, which is answered as soon as it is written. */
  post(message: Rope, sink: AnswerSink): Transmission {
    this.#untold.add(sink);
    if (this.over)
      queueMicrotask(
        () =>
          this.#untold.delete(sink) && sink.onError(new TransportError('unreachable', 'it has just ended')),
      );
    const recall = this.#child.write(asLine(message), () => {
      if (!this.#untold.delete(sink)) return;
      sink.onHead(202, {});
      sink.onEnd('');
    });
    return {
      abort: () => {
        if (this.#untold.delete(sink)) recall();
      },
      waitFor() {},
    };
  }

  abandoned(call: Call): void {
    if (this.#heldFor === call) this.#letGo();
    this.#calls.delete(call.key);
    if (call.recall?.() === true) return;
    if (call.method === INITIALIZE) this.#failedHandshake();
    else if (call.stateless) this.#cancel(call);
  }

  lags(recipient: Recipient, catchUp: CatchUp): void {
    recipient.lags = true;
    // Others who are spoken to on the same channel are not held up.
    if (this.#calls.size <= 1 && !this.#options.shared) {
      this.#heldFor = recipient;
      this.#child.hold(true);
    }
    catchUp(() => {
      recipient.lags = false;
      if (this.#heldFor === recipient) this.#letGo();
    });
  }

  /** Ends the process, and all that waits for it; takes a few seconds at most. */
  stop(reason: string): Promise<void> {
    this.#end(this.#fault ?? new TransportError('broken', reason));
    return this.#child.stop();
  }

  #letGo(): void {
    if (this.#heldFor === undefined) return;
    this.#heldFor = undefined;
    this.#child.hold(false);
  }

  #failedHandshake(): void {
    if (!this.proved) this.#options.onGone('it did not answer in time');
  }

  /** There is no stream whose end would tell the server (basic/transports/stdio, "Cancellation"). */
  #cancel({ key, facts }: Call): void {
    const params = new Rope().push(`{"requestId":${key}`);
    if (facts.envelope !== undefined) params.push(',"_meta":').push(facts.envelope);
    const message = new Rope()
      .push(`{"jsonrpc":"2.0","method":"${CANCELLED}","params":`)
      .push(params.push('}'));
    this.#child.write(asLine(message.push('}')));
  }

  #onLine(line: Buffer): void {
    if (this.#stopped) return;
    const { bytes, replaced } = toValidUtf8(line);
    if (replaced) this.#options.onQuirk('sends bytes that are no UTF-8');
    let frames: Frame[];
    try {
      frames = parseAnswers(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#options.log.noise(line);
      return;
    }
    for (const frame of frames) {
      if (frame.type === 'request') this.#onRequest(frame);
      else if (frame.type === 'notification') this.#onNotification(frame);
      else this.#onAnswer(frame);
    }
  }

  #onAnswer(frame: ResultFrame | ErrorFrame): void {
    const call = frame.id === undefined ? this.#onlyCall() : this.#calls.get(keyOf(frame.id));
    // Of a request that was given up, or that nobody made.
    if (call === undefined) return;
    this.#calls.delete(call.key);
    this.#usedAt = performance.now();
    if (!this.proved) this.#options.onProved();
    this.proved = true;
    const { shared } = this.#options;
    const headers: ResponseHeaders = { 'content-type': 'application/json' };
    const isHandshake = call.method === INITIALIZE && !shared;
    if (isHandshake && frame.type === 'result') this.#welcome(headers);
    const message = shared ? withId(frame, call.id, call.method === LISTEN) : frame.bytes;
    call.answer(message, headers);
    if (isHandshake && frame.type === 'error') this.#options.onRefused('it refused the handshake');
  }

  /** The session that was joined with the request for it is named in the answer. */
  #welcome(headers: ResponseHeaders): void {
    const [id] = this.#sessions.keys();
    if (id !== undefined) headers['mcp-session-id'] = id;
  }

  #onRequest(frame: RequestFrame): void {
    if (frame.method === 'ping') {
      this.#child.write(resultRope(frame.id, new Rope().push('{}')));
      return;
    }
    if (this.#options.shared) {
      if (this.#sessions.size > 0) this.#refuse(frame);
      else
        this.#options.onQuirk(
          `sends requests (${frame.method.slice(0, 100)}), which its revision does not have`,
        );
      return;
    }
    const [session] = this.#sessions.values();
    const call = session?.heard === true ? undefined : this.#onlyCall();
    if (call !== undefined) call.tell(frame.bytes);
    else if (session?.tell(frame.bytes, true) !== true) this.#refuse(frame);
  }

  #refuse({ id, method }: RequestFrame): void {
    const message = `nobody is there who could be asked ${method.slice(0, 100)}`;
    this.#child.write(asLine(errorRope(id, METHOD_NOT_FOUND, message)));
  }

  #onNotification(frame: NotificationFrame): void {
    if (frame.method === PROGRESS) this.#onProgress(frame);
    else if (this.#options.shared) this.#onSharedNotification(frame);
    else {
      const [session] = this.#sessions.values();
      const only = this.#onlyCall();
      const call = frame.method === LOG || session?.heard !== true ? only : undefined;
      if (call !== undefined) this.#hand(call, frame.bytes);
      else if (session !== undefined && !session.lags) session.tell(frame.bytes, false);
    }
  }

  #onProgress(frame: NotificationFrame): void {
    const token = paramOf(frame, 'progressToken');
    if (token === undefined) return;
    const { shared } = this.#options;
    const call = shared ? this.#calls.get(keyOf(token)) : this.#callWithToken(keyOf(token));
    if (call === undefined) return;
    const own = call.facts.progressToken;
    if (own === undefined) return;
    this.#hand(call, shared ? withParam(frame, 'progressToken', own) : frame.bytes);
  }

  /** Of requests without a session: what comes is of a subscription, or of a request that wants to be told. */
  #onSharedNotification(frame: NotificationFrame): void {
    const subscription = subscriptionOf(frame);
    if (subscription !== undefined) {
      const call = this.#calls.get(keyOf(subscription));
      if (call !== undefined) this.#hand(call, withSubscription(frame, call.id));
    } else if (frame.method === CANCELLED) this.#onCancelled(frame);
    else if (frame.method === LOG) {
      const wanting = [...this.#calls.values()].filter(({ facts }) => facts.wantsLog);
      const [call] = wanting;
      // Nothing tells whose it is: what one caller's request has logged is not for another's eyes.
      if (call !== undefined && wanting.length === 1) this.#hand(call, frame.bytes);
    } else if (this.#sessions.size > 0) {
      for (const session of this.#sessions.values()) if (!session.lags) session.tell(frame.bytes, false);
    }
  }

  /** The server ends a subscription (basic/patterns/cancellation). */
  #onCancelled(frame: NotificationFrame): void {
    const id = paramOf(frame, 'requestId');
    const call = id === undefined ? undefined : this.#calls.get(keyOf(id));
    if (call?.method !== LISTEN) return;
    this.#calls.delete(call.key);
    call.end();
  }

  #hand(call: Call, message: Buffer): void {
    if (!call.lags || this.#heldFor === call) call.tell(message);
  }

  #callWithToken(key: string): Call | undefined {
    for (const call of this.#calls.values()) {
      const { progressToken } = call.facts;
      if (progressToken !== undefined && keyOf(progressToken) === key) return call;
    }
    return undefined;
  }

  /** The call that is alone in flight: what is said meanwhile is most likely on its account. */
  #onlyCall(): Call | undefined {
    if (this.#calls.size !== 1) return undefined;
    const [call] = this.#calls.values();
    return call;
  }

  #onOversized({ head, tail, byteLength }: OversizedLine): void {
    const id = idAtEnds(head, tail);
    const call = id === undefined ? undefined : this.#calls.get(keyOf(id));
    if (call === undefined) {
      this.#options.log.oversized(byteLength);
      return;
    }
    this.#calls.delete(call.key);
    const { lineBytes } = this.#options;
    call.fail(new TransportError('too-large', `a message of ${byteLength} bytes, more than ${lineBytes}`));
  }

  #onGone(reason: string, started: boolean): void {
    this.#options.log.ended(reason, this.#stopped);
    if (this.#stopped) return;
    const failure = started ? (this.proved ? 'unanswered' : 'broken') : 'unreachable';
    this.#fault = new TransportError(failure, reason);
    // Its place is given up before anybody is told, and may ask again at once.
    this.#options.onGone(reason);
    this.#end(this.#fault);
  }

  #end(error: TransportError): void {
    if (this.#stopped) return;
    this.#stopped = true;
    const calls = [...this.#calls.values()];
    const untold = [...this.#untold];
    this.#calls.clear();
    this.#untold.clear();
    for (const session of [...this.#sessions.values()]) this.leave(session);
    for (const call of calls) call.fail(error);
    for (const sink of untold) sink.onError(error);
  }
}
