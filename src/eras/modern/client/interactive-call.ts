import type { Caller } from '../../../exchange/caller.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { ownerOf } from '../../../exchange/credentials.js';
import { CODE, overloaded, ServerRequestRefused } from '../../../exchange/errors.js';
import { Exchange, type ExchangeRequest } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { type ErrorOutcome, type Outcome, ownError } from '../../../exchange/outcome.js';
import { MAY_ASK } from '../../../exchange/server-requests.js';
import type { TaskKeeper } from '../../../exchange/tasks.js';
import { type JsonNode, Rope, resultRope } from '../../../jsonrpc/index.js';
import { MODERN_CODE } from '../wire/names.js';
import { lackingCapabilities, refusalOf, serverRequestKind } from '../wire/server-requests.js';
import { OpenServerRequests } from './open-server-requests.js';
import type { Parkable, ParkedCall, ParkedCallStore } from './parked-calls.js';
import { MAX_PENDING, type PendingRequest, PendingRequests } from './pending-requests.js';
import { answersDigest, requestDigest } from './request-state.js';

/** Default of {@link InteractiveCallOptions.gatherMs}. */
const GATHER_MS = 25;

/** The content of a retry. */
export interface Retry {
  readonly forwarded: ForwardedHeaders;
  /** The body of the request. */
  readonly bytes: Buffer;
  /** The value of `inputResponses`. */
  readonly responses: JsonNode | undefined;
}

export interface InteractiveCallOptions {
  readonly store: ParkedCallStore<InteractiveCall>;
  readonly write: (pending: PendingRequest, exchange: Exchange, outcome: Outcome) => void;
  /** What an error means to the client; reports what is a fault of the gateway. */
  readonly failureOf: (error: unknown) => ErrorOutcome;
  readonly request: ExchangeRequest;
  readonly caller: Caller;
  /** Undefined for a client that does not take handles of tasks. */
  readonly taskKeeper: TaskKeeper | undefined;
  /** How long after a server request further ones are sent to the client together with it, in milliseconds. */
  readonly gatherMs?: number;
}

/**
 * One call of a modern client, over as many HTTP requests as it takes (basic/patterns/mrtr). A server request ends the
 * pending HTTP requests with `input_required` and parks the call; the client's retry has the answers and is pending again.
 */
export class InteractiveCall implements Channel, Parkable {
  readonly #store: ParkedCallStore<InteractiveCall>;
  readonly #write: (pending: PendingRequest, exchange: Exchange, outcome: Outcome) => void;
  readonly #failureOf: (error: unknown) => ErrorOutcome;
  readonly #exchange: Exchange;
  readonly #pending: PendingRequests;
  readonly #gatherMs: number;
  /** Undefined until the first one, since most calls have none. */
  #serverRequests: OpenServerRequests | undefined;
  #parkedCall: ParkedCall<InteractiveCall> | undefined;
  /** The retry whose response is due: its round, and the digest of its answers. */
  #retried: { readonly round: number; readonly answers: string } | undefined;
  /** Rounds in which the client has answered something. */
  #answeredRounds = 0;
  #gathering: NodeJS.Timeout | undefined;
  /** The credentials of a retry are being verified. */
  #verifying = false;
  #outcome: Outcome | undefined;
  /** The error that the call ends with in place of the backend's outcome. */
  #error: ErrorOutcome | undefined;

  constructor(
    { store, write, failureOf, request, caller, taskKeeper, gatherMs = GATHER_MS }: InteractiveCallOptions,
    first: PendingRequest,
  ) {
    this.#store = store;
    this.#write = write;
    this.#failureOf = failureOf;
    this.#gatherMs = gatherMs;
    this.#exchange = new Exchange(request, caller, this, { taskKeeper });
    this.#pending = new PendingRequests((left) => this.#onAbort(left));
    this.#pending.add(first);
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  notify(message: ServerMessage): boolean {
    if (message.method === 'notifications/cancelled') {
      this.#serverRequests?.withdraw(message);
      return true;
    }
    return this.#pending.notify(message, this.#exchange);
  }

  onDrain(resume: () => void): void {
    this.#pending.onDrain(resume);
  }

  ask(request: ServerRequest): Promise<ClientAnswer> {
    const kind = serverRequestKind(request.method);
    if (kind === undefined)
      return Promise.reject(new ServerRequestRefused(`Method not found: ${request.method}`));
    const { method } = this.#exchange.request;
    if (!MAY_ASK.has(method)) {
      const message = `the client cannot be asked anything during ${method}`;
      return Promise.reject(new ServerRequestRefused(message));
    }
    if (this.#outcome !== undefined)
      return Promise.reject(new ServerRequestRefused('the call has ended', CODE.internal));
    const full = this.#serverRequests?.full;
    if (full !== undefined) return Promise.reject(full);
    const lacking = lackingCapabilities(request, this.#exchange.caller.capabilities.value);
    if (lacking !== undefined) {
      // The tool cannot be called for a client without a capability that it needs.
      const data = JSON.stringify({ requiredCapabilities: lacking });
      const message = `The client did not declare what ${request.method} of the server needs`;
      this.#end(ownError({ code: MODERN_CODE.missingClientCapability, message, data, status: 400 }));
      return Promise.reject(new ServerRequestRefused(message));
    }
    const error = this.#admit();
    if (error !== undefined) {
      const refusal = refusalOf(request.method);
      this.#end(error);
      return refusal === undefined
        ? Promise.reject(new ServerRequestRefused(error.message, CODE.internal))
        : Promise.resolve(refusal);
    }
    this.#serverRequests ??= new OpenServerRequests();
    const answer = this.#serverRequests.add(kind, request);
    this.#gather();
    return answer;
  }

  /** Continues the call with a retry. Only the answers of the first retry count; copies of it get the same outcome. */
  resume(pending: PendingRequest, retry: Retry): void {
    if (this.#pending.size >= MAX_PENDING) {
      const { outcome } = overloaded(`limit of ${MAX_PENDING} copies of one request reached`);
      this.#write(pending, this.#exchange, outcome);
      return;
    }
    const isFirst = this.#pending.size === 0;
    this.#pending.add(pending);
    if (!isFirst) return;
    const parkedCall = this.#parkedCall as ParkedCall<InteractiveCall>;
    const restoreTime = this.#store.suspend(parkedCall);
    const { forwarded, bytes, responses } = retry;
    this.#retried = { round: parkedCall.round, answers: answersDigest(bytes, responses) };
    const verifying =
      forwarded.authorization === undefined ? undefined : this.#exchange.tryCredentials(forwarded);
    if (verifying === undefined) {
      this.#continue(pending, retry);
      return;
    }
    this.#verifying = true;
    void verifying
      .then(
        () => undefined,
        // Any other error than 401 says nothing about the credentials.
        (error) => {
          const outcome = this.#failureOf(error);
          return outcome.status === 401 ? outcome : undefined;
        },
      )
      .then((refusal) => {
        this.#verifying = false;
        if (refusal === undefined || this.#outcome !== undefined) this.#continue(pending, retry);
        else {
          restoreTime();
          this.#rejectRetry(refusal);
        }
      });
  }

  /** The call has its outcome: writes it to the pending requests, or keeps it for the retry that is still to come. */
  finish(outcome: Outcome): void {
    const final = this.#error ?? outcome;
    clearTimeout(this.#gathering);
    this.#serverRequests?.settleAll(() => new ServerRequestRefused('the call has ended', CODE.internal));
    this.#outcome = final;
    if (this.#pending.size === 0 && this.#exchange.parked) return;
    const write = (pending: PendingRequest): void => this.#write(pending, this.#exchange, final);
    if (this.#parkedCall !== undefined) {
      if (this.#pending.size > 0) this.#settle(this.#parkedCall, write, sizeOf(final));
      this.#store.release(this.#parkedCall);
    }
    for (const pending of this.#pending.take()) write(pending);
  }

  /** No retry came in time: the server gets the refusal of its kind of request, and the call ends. */
  expire(): void {
    this.#serverRequests?.settleAll(
      ({ method }) => refusalOf(method) ?? new ServerRequestRefused('nobody answered in time', CODE.internal),
    );
    setImmediate(() => this.#exchange.cancel('nobody answered in time'));
  }

  get #hasServerRequests(): boolean {
    return this.#serverRequests !== undefined && this.#serverRequests.size > 0;
  }

  #onAbort(left: PendingRequest | undefined): void {
    if (left === undefined) this.#exchange.cancel('the client closed the response stream');
    else this.#exchange.followUnder(left.progressToken);
  }

  #continue(pending: PendingRequest, { forwarded, bytes, responses }: Retry): void {
    if (this.#outcome !== undefined) {
      this.finish(this.#outcome);
      return;
    }
    this.#exchange.renew(forwarded);
    this.#exchange.unpark(pending.progressToken);
    if (responses !== undefined && this.#serverRequests !== undefined) {
      const open = this.#serverRequests.size;
      this.#serverRequests.answer(bytes, responses);
      if (this.#serverRequests.size < open) this.#answeredRounds++;
    }
    // Requests without an answer are sent again, together with new ones.
    if (this.#hasServerRequests) this.#gather();
  }

  /** The backend refuses the credentials of a retry: the call stays parked for a retry with valid ones. */
  #rejectRetry(refusal: ErrorOutcome): void {
    for (const pending of this.#pending.take()) this.#write(pending, this.#exchange, refusal);
  }

  /** Enters the call into the store, unless it is there already; returns the error at a limit of the store. */
  #admit(): ErrorOutcome | undefined {
    if (this.#parkedCall !== undefined) return undefined;
    const { request, caller } = this.#exchange;
    const { bytes, node } = request.params;
    try {
      const digest = requestDigest({
        method: request.method,
        bytes,
        params: node,
        forwarded: caller.forwarded,
      });
      this.#parkedCall = this.#store.admit(
        this,
        caller.principal,
        digest,
        ownerOf(caller.forwarded.authorization),
      );
      return undefined;
    } catch (error) {
      return this.#failureOf(error);
    }
  }

  #end(error: ErrorOutcome): void {
    this.#error ??= error;
    // Later, so that the backend, which waits for an answer, gets the refusal first.
    setImmediate(() => this.#exchange.cancel(error.message));
  }

  #gather(): void {
    if (this.#gathering !== undefined || this.#verifying || this.#pending.size === 0) return;
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      if (this.#hasServerRequests && this.#pending.size > 0) this.#park();
    }, this.#gatherMs);
  }

  #park(): void {
    const parkedCall = this.#parkedCall as ParkedCall<InteractiveCall>;
    const serverRequests = this.#serverRequests as OpenServerRequests;
    const { openSince } = serverRequests;
    // Sending a request again does not extend its time: otherwise retries without answers could hold a call for ever.
    if (this.#store.isOver(openSince)) {
      this.expire();
      return;
    }
    if (this.#answeredRounds >= this.#store.maxRounds) {
      this.#endForRounds(serverRequests);
      return;
    }
    const inputRequests = serverRequests.inputRequests();
    const result = new Rope().push('{"resultType":"input_required","inputRequests":').push(inputRequests);
    result.push(`,"requestState":"${this.#store.startRound(parkedCall, openSince)}"}`);
    this.#exchange.park();
    const text = result.toBuffer();
    const write = ({ id, response }: PendingRequest): void =>
      response.end(200, resultRope(id, new Rope().push(text)));
    this.#settle(parkedCall, write, text.length);
    for (const pending of this.#pending.take()) write(pending);
  }

  /** Keeps the response to the last retry, for copies of it that come later. */
  #settle(
    parkedCall: ParkedCall<InteractiveCall>,
    write: (pending: PendingRequest) => void,
    bytes: number,
  ): void {
    if (this.#retried === undefined) return;
    const { round, answers } = this.#retried;
    this.#retried = undefined;
    this.#store.settle(parkedCall, round, { answers, write, bytes });
  }

  /** The server has sent requests in as many rounds as one call may have. */
  #endForRounds(serverRequests: OpenServerRequests): void {
    const message = `the server asks in more than ${this.#store.maxRounds} rounds of one call (limits.rounds)`;
    serverRequests.settleAll(
      ({ method }) => refusalOf(method) ?? new ServerRequestRefused(message, CODE.internal),
    );
    this.#end(ownError({ code: CODE.internal, message: `Cannot request input: ${message}` }));
  }
}

/** Bytes that an outcome keeps in memory. */
function sizeOf(outcome: Outcome): number {
  return outcome.type === 'result' ? outcome.bytes.length : (outcome.raw?.length ?? outcome.message.length);
}
