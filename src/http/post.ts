import type { IncomingMessage } from 'node:http';
import type { Inbound } from '../eras/index.js';
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
import type { HttpCall } from '../transports/inbound-call.js';
import { type BodyRefused, type BodyTaker, readBody, refuseBody } from './body.js';
import type { Endpoint } from './endpoint.js';
import { isJson } from './media-type.js';

/** One POST to a route: its body is read and parsed, and the message goes to the era that claims it. */
export class Post implements BodyTaker {
  readonly #endpoint: Endpoint;
  readonly #req: IncomingMessage;
  readonly #call: HttpCall;
  readonly #onFault: (error: unknown, call: HttpCall) => void;

  /** @param onFault told of what the gateway itself got wrong; it also answers */
  constructor(
    endpoint: Endpoint,
    req: IncomingMessage,
    call: HttpCall,
    onFault: (error: unknown, call: HttpCall) => void,
  ) {
    this.#endpoint = endpoint;
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
      this.#pass(readMessage(body));
    } catch (error) {
      if (error instanceof FrameError)
        this.#call.answer.end(400, errorRope(error.id, error.code, error.message));
      else this.#onFault(error, this.#call);
    }
  }

  onRefused(error: BodyRefused): void {
    refuseBody(this.#req, () => this.#refuse(error.status, error.message));
  }

  #pass(message: Frame | Batch): void {
    const { service, inbounds } = this.#endpoint;
    const inbound = claimant(inbounds, this.#call, message);
    if (message.type === 'batch' && inbound !== inbounds.at(-1)) {
      this.#refuse(400, 'Invalid Request: batches exist in 2025-03-26 alone', CODE.invalidRequest);
      return;
    }
    inbound.post(service, this.#call, message).catch((error) => this.#onFault(error, this.#call));
  }

  #refuse(status: number, message: string, code: number = CODE.server): void {
    this.#call.answer.end(status, errorRope(undefined, code, message));
  }
}

/** The first side that claims a message; the last one takes what nobody claimed. */
function claimant(inbounds: readonly Inbound[], call: HttpCall, message: Frame | Batch): Inbound {
  for (const inbound of inbounds) if (inbound.claimsPost(call, message)) return inbound;
  return inbounds.at(-1) as Inbound;
}

/** @throws FrameError */
function readMessage(body: Buffer): Frame | Batch {
  const { bytes, replaced } = toValidUtf8(body);
  const message = parseBody(bytes);
  if (!replaced) return message;
  const id = message.type === 'request' ? message.id : undefined;
  throw new FrameError(PARSE_ERROR, 'Parse error: the body is not UTF-8', id);
}
