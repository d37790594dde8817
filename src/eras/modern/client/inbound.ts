import type { HttpCall } from '../../../downstream/http-call.js';
import { CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { Outcome } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { declaresTasks } from '../../../exchange/tasks.js';
import { type Batch, errorRope, type Frame, type RequestFrame } from '../../../jsonrpc/index.js';
import type { Inbound } from '../../era.js';
import { MODERN_VERSION } from '../wire/names.js';
import { claimsBody, claimsHeaders } from './claims.js';
import { discover } from './discover.js';
import { type Envelope, EnvelopeReader } from './envelope.js';
import { InteractiveCall } from './interactive-call.js';
import { KeptTasks, type KeptTasksOptions } from './kept-tasks.js';
import { ListedTools } from './listed-tools.js';
import { listen } from './listen.js';
import { writeOutcome } from './outcome.js';
import { ParkedCallStore, type ParkingOptions } from './parked-calls.js';
import type { PendingRequest } from './pending-requests.js';
import { headerMismatch, type Refusal, writeRefusal } from './refusal.js';
import { callerOf, exchangeRequestOf, type ModernRequest, pendingRequestOf } from './request.js';
import { isRetry, Retries, type RetryKind, repeatedCall } from './retries.js';
import { listenEnd } from './subscription-stream.js';

const LISTEN = 'subscriptions/listen';
const DISCOVER = 'server/discover';

/** The client side of the modern era on one route: there are no sessions, each POST describes its sender. */
export class ModernInbound implements Inbound {
  readonly #store: ParkedCallStore<InteractiveCall>;
  readonly #retries: Retries;
  readonly #tasks: KeptTasks;
  readonly #envelopes = new EnvelopeReader();
  readonly #listed = new ListedTools();

  constructor(parking: ParkingOptions, tasks: KeptTasksOptions) {
    this.#store = new ParkedCallStore(parking);
    this.#retries = new Retries(this.#store);
    this.#tasks = new KeptTasks(tasks);
  }

  claimsPost(call: HttpCall, body: Frame | Batch): boolean {
    return claimsBody(call, body);
  }

  post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void> {
    if (body.type === 'request') return this.#request(route, call, body);
    // The revision has no notifications over HTTP; one that comes is accepted and ignored.
    if (body.type === 'notification') call.response.endEmpty(202);
    else {
      const message = `Invalid Request: ${MODERN_VERSION} has requests and notifications only`;
      call.response.end(400, errorRope(undefined, CODE.invalidRequest, message));
    }
    return Promise.resolve();
  }

  claimsOther(call: HttpCall): boolean {
    return claimsHeaders(call);
  }

  get(_route: RouteService, call: HttpCall): void {
    methodNotAllowed(call);
  }

  async delete(_route: RouteService, call: HttpCall): Promise<void> {
    methodNotAllowed(call);
  }

  async drain(): Promise<void> {
    await this.#tasks.close();
  }

  async close(): Promise<void> {
    await this.#tasks.close();
  }

  /** Responds to one request; never throws. */
  async #request(route: RouteService, call: HttpCall, frame: RequestFrame): Promise<void> {
    const envelope = this.#read(route, call, frame);
    if ('code' in envelope) {
      writeRefusal(call.response, frame.id, envelope);
      return;
    }
    call.response.allowStream();
    const request: ModernRequest = { route, call, frame, envelope };
    let retry: RetryKind | undefined;
    if (isRetry(frame)) {
      try {
        retry = await this.#retries.handle(request);
      } catch (error) {
        writeRefusal(call.response, frame.id, route.failureOf(error));
        return;
      }
    }
    if (retry === 'handled') return;
    if (retry === 'repeat') await this.#request(route, call, repeatedCall(frame));
    else await this.#run(request, { resumes: retry === 'of-backend' });
  }

  /** Validates a request as far as that is possible without the backend. */
  #read(route: RouteService, call: HttpCall, frame: RequestFrame): Envelope | Refusal {
    const envelope = this.#envelopes.read(frame, call.headers);
    if ('code' in envelope) return envelope;
    const problem = this.#listed.problemOf(route.path, call, frame, envelope.name);
    return problem === undefined ? envelope : headerMismatch(problem);
  }

  async #run(request: ModernRequest, { resumes }: { resumes: boolean }): Promise<void> {
    const { route, call, frame, envelope } = request;
    const caller = callerOf(request);
    const interactive = new InteractiveCall(
      {
        store: this.#store,
        write: this.#write,
        failureOf: (error) => route.failureOf(error),
        request: exchangeRequestOf(request, { resumes }),
        caller,
        taskKeeper: declaresTasks(envelope.sender.capabilities) ? this.#tasks.keeperFor(caller) : undefined,
      },
      pendingRequestOf(request),
    );
    const { exchange } = interactive;
    exchange.notes.requestId = call.requestId;
    let outcome: Outcome;
    try {
      outcome = await this.#outcome(request, exchange);
    } catch (error) {
      outcome = route.failureOf(error);
    }
    // The tools of a cached list are known already.
    const cached = exchange.notes.cache !== undefined;
    if (!cached && outcome.type === 'result' && frame.method === 'tools/list')
      this.#listed.learn(route.path, caller, outcome);
    if (frame.method === LISTEN && exchange.cancelled !== undefined) {
      // The gateway ends the subscription with a result; a client that has closed the stream does not get it.
      call.response.end(200, listenEnd(frame.id));
    } else interactive.finish(outcome);
    route.record(exchange, call.response.status, outcome);
  }

  #outcome(request: ModernRequest, exchange: Exchange): Promise<Outcome> {
    const { route, frame } = request;
    if (frame.method === DISCOVER) return discover(route, exchange);
    if (frame.method === LISTEN) return listen(request, exchange);
    return this.#tasks.answer(exchange, (caller) => route.authenticate(caller)) ?? route.run(exchange);
  }

  readonly #write = (pending: PendingRequest, exchange: Exchange, outcome: Outcome): void => {
    writeOutcome(pending, exchange, outcome, () => this.#retries.stateFor(exchange));
  };
}

function methodNotAllowed(call: HttpCall): void {
  const message = `Method Not Allowed: ${MODERN_VERSION} has POST only`;
  call.response.end(405, errorRope(undefined, CODE.server, message), { allow: 'POST' });
}
