import type { ClientResponse } from '../../../downstream/response.js';
import { ownerOf } from '../../../exchange/digest.js';
import { CODE, overloaded, ServerRequestRefused } from '../../../exchange/errors.js';
import { Exchange, type ExchangeRequest } from '../../../exchange/exchange.js';
import { type ErrorOutcome, type Outcome, ownError } from '../../../exchange/outcome.js';
import { MAY_ASK } from '../../../exchange/server-requests.js';
import type { TaskKeeper } from '../../../exchange/tasks.js';
import {
  type Answer,
  type Caller,
  type Channel,
  type ForwardedHeaders,
  isLogLevel,
  type LogLevel,
  levelReaches,
  type ServerMessage,
  type ServerRequest,
} from '../../../exchange/types.js';
import {
  getMember,
  type JsonNode,
  type RequestId,
  Rope,
  resultRope,
  stringOf,
} from '../../../jsonrpc/index.js';
import { MODERN_CODE } from '../wire/names.js';
import { lackingCapabilities, refusalOf, serverRequestKind } from '../wire/server-requests.js';
import { OpenServerRequests } from './open-server-requests.js';
import type { Parkable, ParkedCall, ParkedCallStore } from './parked-calls.js';
import { requestDigest } from './request-state.js';

/** JoinedServerRequests that come within this time of the first are put to the client together. */
const GATHER_MS = 25;
/** Copies of one retry that wait at a time. */
const MAX_WAITERS = 256;

/** An open HTTP request of the client that wants to know how the call goes on. */
export interface Waiter {
  readonly id: RequestId;
  readonly response: ClientResponse;
  readonly progressToken: string | undefined;
  readonly logLevel: LogLevel | undefined;
}

/** What a client comes back with. */
export interface Return {
  readonly forwarded: ForwardedHeaders;
  /** The body of its request. */
  readonly bytes: Buffer;
  readonly responses: JsonNode | undefined;
}

/** What a call is made of. */
export interface InteractiveCallOptions {
  readonly store: ParkedCallStore<InteractiveCall>;
  readonly write: (waiter: Waiter, exchange: Exchange, outcome: Outcome) => void;
  /** What an error means to the client; reports what is a fault of the gateway. */
  readonly failureOf: (error: unknown) => ErrorOutcome;
  readonly request: ExchangeRequest;
  readonly caller: Caller;
  /** Of a client that takes handles of tasks. */
  readonly taskKeeper: TaskKeeper | undefined;
}

/**
 * One call of a modern client from the inside: the requests that wait for it, and the questions that its server asks.
 * A question ends the waiting requests with `input_required` and parks the call; the client's retry, which brings the
 * answers, waits for it again (basic/patterns/mrtr).
 */
export class InteractiveCall implements Channel, Parkable {
  readonly #store: ParkedCallStore<InteractiveCall>;
  readonly #write: (waiter: Waiter, exchange: Exchange, outcome: Outcome) => void;
  readonly #failureOf: (error: unknown) => ErrorOutcome;
  /** Few calls are ever asked anything. */
  #questions: OpenServerRequests | undefined;
  readonly #exchange: Exchange;
  #waiters: Waiter[] = [];
  #parkedCall: ParkedCall<InteractiveCall> | undefined;
  #gathering: NodeJS.Timeout | undefined;
  /** The client is back, and whether with good credentials is being found out. */
  #trying = false;
  #outcome: Outcome | undefined;
  /** The error that the call ends with whatever the backend still says. */
  #verdict: ErrorOutcome | undefined;

  constructor(
    { store, write, failureOf, request, caller, taskKeeper }: InteractiveCallOptions,
    first: Waiter,
  ) {
    this.#store = store;
    this.#write = write;
    this.#failureOf = failureOf;
    this.#exchange = new Exchange(request, caller, this, { taskKeeper });
    this.#waiters.push(first);
    this.#watch(first);
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  notify(message: ServerMessage): boolean {
    if (message.method === 'notifications/cancelled') {
      this.#questions?.withdraw(message);
      return true;
    }
    let keepsUp = true;
    for (const waiter of this.#waiters) {
      if (!this.#wanted(message, waiter)) continue;
      const reads = waiter.response.writeEvent(new Rope().push(message.bytes));
      keepsUp = keepsUp && reads;
    }
    return keepsUp;
  }

  onDrain(resume: () => void): void {
    const [waiter] = this.#waiters;
    if (waiter === undefined) resume();
    else waiter.response.onDrain(resume);
  }

  ask(question: ServerRequest): Promise<Answer> {
    const kind = serverRequestKind(question.method);
    if (kind === undefined)
      return Promise.reject(new ServerRequestRefused(`Method not found: ${question.method}`));
    const { request } = this.#exchange;
    if (!MAY_ASK.has(request.method)) {
      const message = `the client cannot be asked anything during ${request.method}`;
      return Promise.reject(new ServerRequestRefused(message));
    }
    if (this.#outcome !== undefined)
      return Promise.reject(new ServerRequestRefused('the call has ended', CODE.internal));
    const full = this.#questions?.full;
    if (full !== undefined) return Promise.reject(full);
    const lacking = lackingCapabilities(question, this.#exchange.caller.capabilities.value);
    if (lacking !== undefined) {
      // A tool that insists on what its client cannot do cannot be carried out for it.
      const data = JSON.stringify({ requiredCapabilities: lacking });
      const message = `The client did not declare what ${question.method} of the server needs`;
      this.#end(ownError({ code: MODERN_CODE.missingClientCapability, message, data, status: 400 }));
      return Promise.reject(new ServerRequestRefused(message));
    }
    const error = this.#admit();
    if (error !== undefined) {
      const refusal = refusalOf(question.method);
      this.#end(error);
      return refusal === undefined
        ? Promise.reject(new ServerRequestRefused(error.message, CODE.internal))
        : Promise.resolve(refusal);
    }
    this.#questions ??= new OpenServerRequests();
    const answer = this.#questions.add(kind, question);
    this.#gather();
    return answer;
  }

  /** A retry came for the round that is open. The first one's answers count; copies of it wait for the same outcome. */
  resume(waiter: Waiter, { forwarded, bytes, responses }: Return): void {
    const parkedCall = this.#parkedCall as ParkedCall<InteractiveCall>;
    const first = this.#waiters.length === 0;
    if (this.#waiters.length >= MAX_WAITERS) {
      const { outcome } = overloaded(`limit of ${MAX_WAITERS} copies of one request reached`);
      this.#write(waiter, this.#exchange, outcome);
      return;
    }
    this.#waiters.push(waiter);
    this.#watch(waiter);
    if (!first) return;
    const { expiresAt } = parkedCall;
    parkedCall.expiresAt = Number.POSITIVE_INFINITY;
    const goOn = (): void => this.#goOn(waiter, forwarded, bytes, responses);
    const trying =
      forwarded.authorization === undefined ? undefined : this.#exchange.tryCredentials(forwarded);
    if (trying === undefined) {
      goOn();
      return;
    }
    this.#trying = true;
    void trying
      .then(
        () => undefined,
        // Whatever else the backend has to say of a try, the answers themselves may still find their way.
        (error) => {
          const outcome = this.#failureOf(error);
          return outcome.status === 401 ? outcome : undefined;
        },
      )
      .then((refusal) => {
        this.#trying = false;
        if (refusal === undefined || this.#outcome !== undefined) goOn();
        else this.#rejectRetry(parkedCall, expiresAt, refusal);
      });
  }

  #goOn(waiter: Waiter, forwarded: ForwardedHeaders, bytes: Buffer, responses: JsonNode | undefined): void {
    if (this.#outcome !== undefined) {
      this.finish(this.#outcome);
      return;
    }
    this.#exchange.renew(forwarded);
    this.#exchange.unpark(waiter.progressToken);
    if (responses !== undefined) this.#questions?.answer(bytes, responses);
    // What was not answered is asked again, together with what comes up meanwhile.
    if (this.#hasServerRequests) this.#gather();
  }

  /** The backend refuses the credentials of a retry: the same retry with better ones finds everything as it was. */
  #rejectRetry(parkedCall: ParkedCall<InteractiveCall>, expiresAt: number, refusal: ErrorOutcome): void {
    parkedCall.expiresAt = expiresAt;
    for (const waiter of this.#waiters.splice(0)) this.#write(waiter, this.#exchange, refusal);
  }

  /** The call has its outcome: the waiting requests get it, or the retry that is still to come. */
  finish(outcome: Outcome): void {
    const final = this.#verdict ?? outcome;
    clearTimeout(this.#gathering);
    this.#questions?.settleAll(() => new ServerRequestRefused('the call has ended', CODE.internal));
    this.#outcome = final;
    // The client has left with questions, and comes back for this.
    if (this.#waiters.length === 0 && this.#exchange.parked) return;
    if (this.#parkedCall !== undefined) this.#store.release(this.#parkedCall);
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) this.#write(waiter, this.#exchange, final);
  }

  get #hasServerRequests(): boolean {
    return this.#questions !== undefined && this.#questions.size > 0;
  }

  /** Nobody answered: the server is told so in the words that its question has for that, and the call ends. */
  expire(): void {
    this.#questions?.settleAll(
      ({ method }) => refusalOf(method) ?? new ServerRequestRefused('nobody answered in time', CODE.internal),
    );
    setImmediate(() => this.#exchange.cancel('nobody answered in time'));
  }

  #watch(waiter: Waiter): void {
    waiter.response.onAbort(() => {
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      const [left] = this.#waiters;
      if (left === undefined) this.#exchange.cancel('the client closed the response stream');
      else this.#exchange.followUnder(left.progressToken);
    });
  }

  /** Takes a place for the call, unless it has one. */
  #admit(): ErrorOutcome | undefined {
    if (this.#parkedCall !== undefined) return undefined;
    const { request, caller } = this.#exchange;
    const { bytes, node } = request.params;
    try {
      const digest = requestDigest(request.method, bytes, node);
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

  #end(outcome: ErrorOutcome): void {
    this.#verdict ??= outcome;
    // After the refusal is on its way to the backend, which is what it waits for.
    setImmediate(() => this.#exchange.cancel(outcome.message));
  }

  #gather(): void {
    if (this.#gathering !== undefined || this.#trying || this.#waiters.length === 0) return;
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      if (this.#hasServerRequests && this.#waiters.length > 0) this.#park();
    }, GATHER_MS);
  }

  #park(): void {
    const parkedCall = this.#parkedCall as ParkedCall<InteractiveCall>;
    const questions = this.#questions as OpenServerRequests;
    const { openSince } = questions;
    // To ask again what was left open is no reason for more time: a client that only ever comes back would have it all.
    if (this.#store.isOver(openSince)) {
      this.expire();
      return;
    }
    const requests = questions.inputRequests();
    const result = new Rope().push('{"resultType":"input_required","inputRequests":').push(requests);
    result.push(`,"requestState":"${this.#store.startRound(parkedCall, openSince)}"}`);
    this.#exchange.park();
    for (const waiter of this.#waiters.splice(0)) waiter.response.end(200, resultRope(waiter.id, result));
  }

  /**
   * Whether a notification belongs on a response stream: progress that was asked for, and log messages of the level
   * asked for (basic/patterns/progress, server/utilities/logging). A modern backend has seen to that itself.
   */
  #wanted(message: ServerMessage, waiter: Waiter): boolean {
    if (this.#exchange.notes.backendEra === 'modern') return true;
    if (message.method === 'notifications/progress') {
      // It is written under the one token that the exchange goes by; a copy of the request may have another.
      return waiter.progressToken !== undefined && waiter.progressToken === this.#exchange.progressToken;
    }
    if (message.method !== 'notifications/message') return false;
    const { bytes, params } = message;
    if (waiter.logLevel === undefined || params === undefined) return false;
    const level = stringOf(bytes, getMember(bytes, params, 'level'));
    return isLogLevel(level) && levelReaches(level, waiter.logLevel);
  }
}
