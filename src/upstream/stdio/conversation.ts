import {
  type ErrorFrame,
  errorRope,
  type Frame,
  FrameError,
  parseLenientFrames,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
  Rope,
  requestRope,
  resultRope,
  toValidUtf8,
} from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError, type TransportFailure } from '../errors.js';
import { INVALID_UTF8 } from '../read-frames.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { Child, type Command } from './child.js';
import type { ChildLog } from './child-log.js';
import { Call, type CallOwner, type Recipient } from './in-flight-request.js';
import type { OversizedLine } from './line-reader.js';
import { Liveness } from './liveness.js';
import { asLine, CANCELLED, factsOf, idAtEnds, keyOf, LISTEN, renumbered, withId } from './messages.js';
import type { Routing, Talk } from './routing.js';
import type { StdioSession } from './session.js';

export interface ConversationOptions<R extends Routing> {
  readonly command: Command;
  readonly lineBytes: number;
  readonly routing: (talk: Talk) => R;
  readonly log: ChildLog;
  readonly onDeviation: (what: string) => void;
  /** It has answered something else than the handshake for the first time. */
  readonly onUseful: () => void;
  /**
   * The process is gone, or never said anything, though nobody wanted that; told once.
   * @param failed it was of no use, and that for no reason that is known
   */
  readonly onGone: (reason: string, failed: boolean) => void;
  /** It refused the handshake for which it was started. */
  readonly onRefused: (reason: string) => void;
  /** How long a call may take in all, in milliseconds. */
  readonly totalMs: number;
}

const METHOD_NOT_FOUND = -32601;
/** A process that has worked for so long does not end on account of what it was asked first. */
const STEADY_MS = 1_000;
const ENDED = 'it has just ended';
/** So many lines in a row that are no messages are a process that was started by mistake. */
const MAX_NOISE = 100_000;
/** A process that leaves so much unread of what only it has asked for, or is to be told, does not read any more. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** What a message takes up beside its text. */
const OVERHEAD_BYTES = 256;
/** No request of a caller has it: theirs are numbers, or what the gateway gave them. */
const PING_ID = '"eragate-alive"' as RequestId;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Everything that is said with one process: requests and their responses, and the way to others for all else. */
export class Conversation<R extends Routing = Routing> implements CallOwner, Talk {
  readonly routing: R;
  readonly calls = new Map<string, Call>();
  /** When it first answered something. */
  #provedAt: number | undefined;
  #useful = false;
  #noiseInARow = 0;
  /** Of messages that nobody takes back, such as answers to pings. */
  #unreadBytes = 0;
  readonly #options: ConversationOptions<R>;
  readonly #child: Child;
  /** Messages without a response that are on their way. */
  readonly #untold = new Set<ResponseSink>();
  #nextId = 1;
  /** Whoever the process is held up for. */
  #heldFor: Recipient | undefined;
  #stopped = false;
  #usedAt = performance.now();
  readonly #liveness: Liveness;
  /** What those who wait are told once the process is gone. */
  #fault: TransportError | undefined;

  constructor(options: ConversationOptions<R>) {
    this.#options = options;
    this.routing = options.routing(this);
    this.#child = new Child(options.command, options.lineBytes, {
      onLine: (line) => this.#onLine(line),
      onOversized: (line) => this.#onOversized(line),
      onErrorLine: (line) => options.log.errorLine(line),
      onGone: (reason, started) => this.#onGone(reason, started),
    });
    this.#liveness = new Liveness({
      totalMs: options.totalMs,
      ping: () => this.write(requestRope(PING_ID, 'ping', undefined)),
      onDead: (reason) => this.#giveUpOn(reason, 'broken'),
    });
    options.log.started(this.#child.pid);
  }

  /** Nothing can be said any more. */
  get over(): boolean {
    return this.#stopped || this.#child.gone;
  }

  /** Since when it has had nothing to do. */
  get idleSince(): number {
    return this.calls.size > 0 || this.routing.inUse ? performance.now() : this.#usedAt;
  }

  get onlyCall(): Call | undefined {
    if (this.calls.size !== 1) return undefined;
    const [call] = this.calls.values();
    return call;
  }

  /** @param session the one that the request came on */
  request(frame: RequestFrame, sink: ResponseSink, session: StdioSession | undefined): Call {
    this.#detach();
    const facts = factsOf(frame);
    const { renumbers } = this.routing;
    const id = renumbers ? String(this.#nextId++) : frame.id;
    const call = new Call(this, sink, { id: frame.id, key: keyOf(id), method: frame.method, facts, session });
    if (this.over) {
      queueMicrotask(() => call.fail(new TransportError('unreachable', ENDED)));
      return call;
    }
    this.calls.set(call.key, call);
    const body = renumbers
      ? renumbered(frame, id, facts.progressToken !== undefined)
      : new Rope().push(frame.bytes);
    call.recall = this.#child.write(asLine(body), () => {
      call.recall = undefined;
    });
    return call;
  }

  /** Writes a notification, or the answer to a question, which is answered as soon as it is written. */
  post(message: Rope, sink: ResponseSink): UpstreamRequest {
    this.#untold.add(sink);
    if (this.over) queueMicrotask(() => this.#failPost(sink, new TransportError('unreachable', ENDED)));
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

  write(message: Rope): void {
    const bytes = message.byteLength + OVERHEAD_BYTES;
    this.#unreadBytes += bytes;
    this.#child.write(asLine(message), () => {
      this.#unreadBytes -= bytes;
    });
    if (this.#unreadBytes > MAX_UNREAD_BYTES && !this.over)
      this.#giveUpOn('it does not read what it is told');
  }

  refuse({ id, method }: RequestFrame): void {
    const message = `nobody is there who could be asked ${method.slice(0, 100)}`;
    this.write(errorRope(id, METHOD_NOT_FOUND, message));
  }

  reportDeviation(what: string): void {
    this.#options.onDeviation(what);
  }

  abandoned(call: Call): void {
    if (this.#heldFor === call) this.#detach();
    this.calls.delete(call.key);
    this.#usedAt = performance.now();
    if (!this.over) this.#liveness.doubt(call.madeAt);
    if (call.recall?.() === true) return;
    if (call.session === undefined) this.#cancel(call);
    else if (call.isHandshake) this.giveUp();
  }

  /** Nobody waits any longer for the first word of the process. */
  giveUp(): void {
    if (this.#provedAt === undefined) this.#giveUpOn('it did not answer in time', 'broken');
  }

  /** The process refused what it was started for, and is of no use. */
  dismiss(): void {
    this.#options.onRefused('it refused the handshake');
  }

  lags(recipient: Recipient, backpressure: Backpressure): void {
    if (recipient.lags) return;
    recipient.lags = true;
    // Others who are spoken to on the same channel are not held up.
    const alone = this.calls.size === 0 || this.onlyCall === recipient;
    if (alone && !this.routing.renumbers) {
      this.#heldFor = recipient;
      this.#child.hold(true);
    }
    backpressure(() => {
      recipient.lags = false;
      if (this.#heldFor === recipient) this.#detach();
    });
  }

  hand(call: Call, message: Buffer): void {
    if (!call.lags || this.#heldFor === call) call.tell(message);
  }

  finish(call: Call): void {
    this.calls.delete(call.key);
    call.end();
  }

  /** Ends the process, and all that waits for it; takes a few seconds at most. */
  stop(reason: string): Promise<void> {
    this.#end(this.#fault ?? new TransportError('broken', reason));
    return this.#child.stop();
  }

  #detach(): void {
    if (this.#heldFor === undefined) return;
    this.#heldFor = undefined;
    this.#child.hold(false);
  }

  /** There is no stream whose end would tell the server (basic/transports/stdio, "Cancellation"). */
  #cancel({ key, facts }: Call): void {
    const params = new Rope().push(`{"requestId":${key}`);
    const envelope = facts.envelope();
    if (envelope !== undefined) params.push(',"_meta":').push(envelope);
    const message = new Rope().push(`{"jsonrpc":"2.0","method":"${CANCELLED}","params":`);
    this.write(message.push(params.push('}')).push('}'));
  }

  #onLine(line: Buffer): void {
    if (this.#stopped) return;
    this.#liveness.heard();
    const first = firstByte(line);
    if (first === undefined) return;
    const frames = first === OPEN_BRACE || first === OPEN_BRACKET ? this.#read(line) : undefined;
    if (frames === undefined) this.#onNoise(line);
    else {
      this.#noiseInARow = 0;
      this.#takeAll(frames);
    }
  }

  /** A fault in one message must not become that of the whole gateway: nobody above would catch it. */
  #takeAll(frames: readonly Frame[]): void {
    try {
      for (const frame of frames) this.#take(frame);
    } catch (error) {
      this.#giveUpOn(`the gateway failed on what it said: ${(error as Error).message}`);
    }
  }

  /** @returns undefined for what is no message */
  #read(line: Buffer): Frame[] | undefined {
    const { bytes, replaced } = toValidUtf8(line);
    try {
      const frames = parseLenientFrames(bytes);
      if (replaced) this.reportDeviation(INVALID_UTF8);
      return frames;
    } catch (error) {
      if (error instanceof FrameError) return undefined;
      throw error;
    }
  }

  #onNoise(line: Buffer): void {
    this.#options.log.noise(line);
    if (++this.#noiseInARow > MAX_NOISE) this.#giveUpOn('it writes what is no message');
  }

  #take(frame: Frame): void {
    if (frame.type === 'notification') this.routing.onNotification(frame);
    else if (frame.type !== 'request') this.#onAnswer(frame);
    else if (frame.method === 'ping' && this.routing.inUse)
      this.write(resultRope(frame.id, new Rope().push('{}')));
    else this.routing.onRequest(frame);
  }

  /** The process runs, and is of no use. */
  #giveUpOn(reason: string, failure: TransportFailure = 'unusable'): void {
    this.#options.log.givenUp(reason);
    this.#fault = new TransportError(failure, reason);
    this.#options.onGone(reason, !this.#useful);
  }

  #onAnswer(frame: ResultFrame | ErrorFrame): void {
    const call = frame.id === undefined ? this.onlyCall : this.calls.get(keyOf(frame.id));
    // Of a request that was given up, or that nobody made.
    if (call === undefined) return;
    this.calls.delete(call.key);
    this.#usedAt = performance.now();
    this.#provedAt ??= this.#usedAt;
    if (!this.#useful && !call.isHandshake) {
      this.#useful = true;
      this.#options.onUseful();
    }
    const { renumbers } = this.routing;
    call.answer(renumbers ? withId(frame, call.id, call.method === LISTEN) : frame.bytes, frame.type);
    if (call.isHandshake && call.session !== undefined && frame.type === 'error') this.dismiss();
  }

  #onOversized({ head, tail, byteLength }: OversizedLine): void {
    const id = idAtEnds(head, tail);
    const call = id === undefined ? undefined : this.calls.get(keyOf(id));
    if (call === undefined) {
      this.#options.log.oversized(byteLength);
      return;
    }
    this.calls.delete(call.key);
    const { lineBytes } = this.#options;
    call.fail(new TransportError('too-large', `a message of ${byteLength} bytes, more than ${lineBytes}`));
  }

  #onGone(reason: string, started: boolean): void {
    this.#options.log.ended(reason, this.#stopped);
    if (this.#stopped) return;
    const steady = this.#provedAt !== undefined && performance.now() - this.#provedAt > STEADY_MS;
    // What may be sent twice is, but not to a process that ends on account of it.
    const failure = steady ? 'unanswered' : started ? 'broken' : 'unreachable';
    this.#fault = new TransportError(failure, reason);
    // One that has taken part in the handshake may have ended on account of what it was asked then.
    const failed = !this.#useful && (this.#provedAt === undefined || this.calls.size === 0);
    // Its place is given up before anybody is told, and may ask again at once.
    this.#options.onGone(reason, failed);
    this.#end(this.#fault);
  }

  #end(error: TransportError): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#liveness.stop();
    const calls = [...this.calls.values()];
    this.calls.clear();
    this.routing.end();
    // What the process never got may go to another.
    const unsent = new TransportError('unreachable', error.message);
    for (const call of calls) call.fail(call.recall?.() === true ? unsent : error);
    for (const sink of [...this.#untold]) this.#failPost(sink, error);
  }

  #failPost(sink: ResponseSink, error: TransportError): void {
    if (this.#untold.delete(sink)) sink.onError(error);
  }
}

/** The first byte that is neither white space nor of a byte order mark. */
function firstByte(line: Buffer): number | undefined {
  for (const byte of line) if (byte > 0x20 && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) return byte;
  return undefined;
}
