import type { IncomingMessage } from 'node:http';
import { isMessageType } from '../body/media-type.js';
import type { HttpCall } from '../downstream/http-call.js';
import {
  type Batch,
  type Frame,
  FrameError,
  PARSE_ERROR,
  parseBody,
  type RequestId,
  toValidUtf8,
} from '../jsonrpc/index.js';
import { type BodyReceiver, type BodyRefused, readBody, refuseBody } from './body.js';
import { endRefused, INTERNAL, type Refusal, refusal, UNSUPPORTED_MEDIA_TYPE } from './errors.js';
import type { ParsedRequest, RequestPipeline } from './pipeline.js';
import { LARGE_BODIES } from './turns.js';

/** Handles the message of a POST. */
export interface Receiver {
  pass(message: Frame | Batch, call: HttpCall): Promise<void>;
}

export interface PostOptions {
  readonly pipeline: RequestPipeline;
  /** Longest body, in bytes. */
  readonly bodyBytes: number;
  /** Logs what the gateway itself got wrong. */
  readonly onFault: (error: unknown, requestId: string) => void;
}

/** Longer messages are parsed in turns, since one takes some milliseconds. */
const LARGE_BYTES = 64 * 1024;

/** One POST: its body is read and parsed, the pipeline admits the message, and the receiver handles it. */
export class Post implements BodyReceiver {
  readonly #receiver: Receiver;
  readonly #request: ParsedRequest;
  readonly #call: HttpCall;
  readonly #options: PostOptions;

  constructor(receiver: Receiver, request: ParsedRequest, call: HttpCall, options: PostOptions) {
    this.#receiver = receiver;
    this.#request = request;
    this.#call = call;
    this.#options = options;
  }

  start(): void {
    const type = this.#message.headers['content-type'];
    if (type === undefined || isMessageType(type)) readBody(this.#message, this.#options.bodyBytes, this);
    else this.#refuseBody(UNSUPPORTED_MEDIA_TYPE);
  }

  onBody(body: Buffer): void {
    if (body.length <= LARGE_BYTES) this.#handle(body);
    else LARGE_BODIES.run(() => this.#handle(body));
  }

  #handle(body: Buffer): void {
    try {
      const message = readMessage(body);
      const verdict = this.#options.pipeline.admitMessage(this.#request, message);
      const done =
        verdict instanceof Promise ? this.#passLater(verdict, message) : this.#pass(verdict, message);
      done?.catch((error) => this.#fault(error));
    } catch (error) {
      if (error instanceof FrameError)
        this.#refuse({ status: 400, code: error.code, message: error.message }, error.id);
      else this.#fault(error);
    }
  }

  onRefused({ status, message }: BodyRefused): void {
    this.#refuseBody(refusal(status, message));
  }

  get #message(): IncomingMessage {
    return this.#request.message;
  }

  async #passLater(verdict: Promise<Refusal | undefined>, message: Frame | Batch): Promise<void> {
    await this.#pass(await verdict, message);
  }

  #pass(refused: Refusal | undefined, message: Frame | Batch): Promise<void> | undefined {
    if (refused === undefined) return this.#receiver.pass(message, this.#call);
    this.#refuse(refused, message.type === 'request' ? message.id : undefined);
    return undefined;
  }

  #refuseBody(refused: Refusal): void {
    refuseBody(this.#message, () => this.#refuse(refused));
  }

  #fault(error: unknown): void {
    this.#options.onFault(error, this.#call.requestId);
    this.#refuse(INTERNAL);
  }

  #refuse(refused: Refusal, id?: RequestId): void {
    endRefused(this.#call.response, refused, id);
  }
}

/** @throws FrameError */
function readMessage(body: Buffer): Frame | Batch {
  const { bytes, replaced } = toValidUtf8(body);
  const message = parseBody(bytes);
  if (!replaced) return message;
  const id = message.type === 'request' ? message.id : undefined;
  throw new FrameError(PARSE_ERROR, 'Parse error: the body is not UTF-8', id);
}
