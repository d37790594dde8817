import type { IncomingMessage } from 'node:http';
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
import { type BodyRefused, type BodyTaker, readBody, refuseBody } from './body.js';
import { isJson } from './media-type.js';

/** Takes what was posted. */
export interface Receiver {
  pass(message: Frame | Batch, call: HttpCall): Promise<void>;
}

/** One POST to a route: its body is read and parsed, and the message is passed on. */
export class Post implements BodyTaker {
  readonly #receiver: Receiver;
  readonly #req: IncomingMessage;
  readonly #call: HttpCall;
  readonly #onFault: (error: unknown, call: HttpCall) => void;

  /** @param onFault told of what the gateway itself got wrong; it also answers */
  constructor(
    receiver: Receiver,
    req: IncomingMessage,
    call: HttpCall,
    onFault: (error: unknown, call: HttpCall) => void,
  ) {
    this.#receiver = receiver;
    this.#req = req;
    this.#call = call;
    this.#onFault = onFault;
  }

  /** @param limit greatest length of the body in bytes */
  take(limit: number): void {
    const type = this.#req.headers['content-type'];
    if (type === undefined || isJson(type)) readBody(this.#req, limit, this);
    else {
      const message = 'Unsupported Media Type: Content-Type must be application/json';
      refuseBody(this.#req, () => this.#refuse(415, message));
    }
  }

  onBody(body: Buffer): void {
    try {
      const passed = this.#receiver.pass(readMessage(body), this.#call);
      passed.catch((error) => this.#onFault(error, this.#call));
    } catch (error) {
      if (error instanceof FrameError)
        this.#call.response.end(400, errorRope(error.id, error.code, error.message));
      else this.#onFault(error, this.#call);
    }
  }

  onRefused(error: BodyRefused): void {
    refuseBody(this.#req, () => this.#refuse(error.status, error.message));
  }

  #refuse(status: number, message: string): void {
    this.#call.response.end(status, errorRope(undefined, CODE.server, message));
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
