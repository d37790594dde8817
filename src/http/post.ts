import type { IncomingMessage } from 'node:http';
import { isMessageType } from '../body/media-type.js';
import type { HttpCall } from '../downstream/http-call.js';
import { CODE } from '../exchange/errors.js';
import {
  type Batch,
  errorRope,
  type Frame,
  FrameError,
  PARSE_ERROR,
  parseBody,
  toValidUtf8,
} from '../jsonrpc/index.js';
import { type BodyReceiver, type BodyRefused, readBody, refuseBody } from './body.js';
import type { ParsedRequest, Refusal, RequestPipeline } from './pipeline.js';

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
    else this.#refuseBody(415, 'Unsupported Media Type: Content-Type must be application/json');
  }

  onBody(body: Buffer): void {
    try {
      const message = readMessage(body);
      const verdict = this.#options.pipeline.admitMessage(this.#request, message);
      const done =
        verdict instanceof Promise ? this.#passLater(verdict, message) : this.#pass(verdict, message);
      done?.catch((error) => this.#fault(error));
    } catch (error) {
      if (error instanceof FrameError) this.#end(400, errorRope(error.id, error.code, error.message));
      else this.#fault(error);
    }
  }

  onRefused({ status, message }: BodyRefused): void {
    this.#refuseBody(status, message);
  }

  get #message(): IncomingMessage {
    return this.#request.message;
  }

  async #passLater(verdict: Promise<Refusal | undefined>, message: Frame | Batch): Promise<void> {
    await this.#pass(await verdict, message);
  }

  #pass(refusal: Refusal | undefined, message: Frame | Batch): Promise<void> | undefined {
    if (refusal === undefined) return this.#receiver.pass(message, this.#call);
    const id = message.type === 'request' ? message.id : undefined;
    const { status, code, message: text, headers } = refusal;
    this.#call.response.end(status, errorRope(id, code, text), headers);
    return undefined;
  }

  #refuseBody(status: number, message: string): void {
    refuseBody(this.#message, () => this.#end(status, errorRope(undefined, CODE.server, message)));
  }

  #fault(error: unknown): void {
    this.#options.onFault(error, this.#call.requestId);
    this.#end(500, errorRope(undefined, CODE.internal, 'Internal error of the gateway'));
  }

  #end(status: number, message: ReturnType<typeof errorRope>): void {
    this.#call.response.end(status, message);
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
