import { isChange } from '../../../exchange/changes/change.js';
import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import { cancelled, type ExchangeError } from '../../../exchange/errors.js';
import type { Exchange, ExchangeObserver } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { serverMessageFor } from '../../../exchange/progress.js';
import { rewriteParams } from '../../../exchange/rewrite-params.js';
import { pause } from '../../../exchange/utils/abortable.js';
import {
  type Edits,
  getMember,
  type NotificationFrame,
  type RequestFrame,
  Rope,
} from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import type { RpcCall, RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import { downgradeParams } from '../wire/downgrade.js';
import { featuresFor } from '../wire/revisions.js';
import type { Roots } from './roots.js';
import { type Answering, answerServer } from './server-requests.js';
import type { BackendSession } from './session.js';

/** What a client of the modern era brings along when it tries again, which no server of this one knows. */
const FOREIGN_MEMBERS: ReadonlyMap<string, undefined> = new Map([
  ['inputResponses', undefined],
  ['requestState', undefined],
]);
/** The same of the one method that `task` would make a task here alone. */
const FOREIGN_TO_CALLS: ReadonlyMap<string, undefined> = new Map([...FOREIGN_MEMBERS, ['task', undefined]]);
const USUAL_RESUME_PAUSE_MS = 1_000;
const SHORTEST_RESUME_PAUSE_MS = 20;
const LONGEST_RESUME_PAUSE_MS = 10_000;
/** Some servers have their clients poll, by ending each stream after a while. */
const MAX_RESUMES = 1_000;
/** Connections in a row that may break before anything came. */
const MAX_FAILURES = 3;

function foreignMembers({ request, caller }: Exchange): Edits | undefined {
  const { bytes, node } = request.params;
  if (caller.era === 'legacy' || node === undefined) return undefined;
  const foreign = request.method === 'tools/call' ? FOREIGN_TO_CALLS : FOREIGN_MEMBERS;
  for (const key of foreign.keys()) if (getMember(bytes, node, key) !== undefined) return foreign;
  return undefined;
}

/** One exchange on a backend session: the request, its progress and questions, its cancellation. */
export class LegacyCall implements RpcListener, Answering, ExchangeObserver {
  readonly #exchange: Exchange;
  readonly #session: BackendSession;
  #id = 0;
  #rpc: RpcCall | undefined;
  #done = false;
  #undelivered: ExchangeError | undefined;
  readonly #onChange: (frame: NotificationFrame) => void;
  readonly #roots: Roots;

  /** @param onChange told of changes that the answer stream speaks of */
  constructor(
    exchange: Exchange,
    session: BackendSession,
    roots: Roots,
    onChange: (frame: NotificationFrame) => void,
  ) {
    this.#onChange = onChange;
    this.#exchange = exchange;
    this.#session = session;
    this.#roots = roots;
  }

  /** The id under which the request was sent. */
  get id(): number {
    return this.#id;
  }

  /**
   * @param edits to the params, other than those that a call of the other era needs
   * @throws ExchangeError when the exchange is cancelled meanwhile
   */
  async run(edits: Edits | undefined = this.#edits()): Promise<RpcReply> {
    const { request, caller, cancelled: over } = this.#exchange;
    // What nobody waits for any longer is not begun.
    if (over !== undefined) throw cancelled(over);
    const startedAt = performance.now();
    const sent = this.#session.request(
      request.method,
      (id) => {
        const token =
          request.progressToken === undefined ? undefined : new Map([['progressToken', String(id)]]);
        return rewriteParams(request.params, token, edits);
      },
      caller.forwarded,
      this,
    );
    this.#id = sent.id;
    this.#rpc = sent.rpc;
    const observing = this.#exchange.attach(this);
    let reply: RpcReply;
    try {
      const first = await sent.done;
      reply = breaksOff(first) ? await this.#resume(first) : first;
    } finally {
      this.#done = true;
      observing[Symbol.dispose]();
    }
    this.#exchange.notes.backendMs = performance.now() - startedAt;
    if (this.#undelivered !== undefined) throw this.#undelivered;
    if (this.#exchange.cancelled !== undefined) throw cancelled(this.#exchange.cancelled);
    return reply;
  }

  /** What the backend could not understand, or not rightly. */
  #edits(): Edits | undefined {
    const { revision } = this.#session.info;
    return (
      foreignMembers(this.#exchange) ?? downgradeParams(this.#exchange.request.method, featuresFor(revision))
    );
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (isChange(frame.method)) this.#onChange(frame);
    const exchange = this.#exchange;
    const message = serverMessageFor(exchange, frame, String(this.#id));
    if (message === undefined || exchange.notify(message)) return undefined;
    return (resume) => exchange.onDrain(resume);
  }

  /** A question of the server, whether it came on the call's own stream or on that of a session that the call has alone. */
  onRequest(frame: RequestFrame): void {
    void answerServer(this.#session, frame, this);
  }

  get forwarded(): ForwardedHeaders {
    return this.#exchange.caller.forwarded;
  }

  get over(): boolean {
    return this.#done;
  }

  answerTo(question: ServerRequest): Promise<ClientAnswer> {
    const { caller } = this.#exchange;
    const ask = (): Promise<ClientAnswer> => this.#exchange.ask(question);
    const isOfRoots = question.method === 'roots/list' && caller.era !== 'legacy';
    return isOfRoots ? this.#roots.answer(caller, ask) : ask();
  }

  undelivered(error: ExchangeError): void {
    if (this.#done) return;
    this.#undelivered ??= error;
    this.onCancelled(error.outcome.message);
  }

  onCancelled(reason: string): void {
    const { request, caller } = this.#exchange;
    if (request.method !== 'initialize') {
      const params = new Rope().push(`{"requestId":${this.#id},"reason":${JSON.stringify(reason)}}`);
      void this.#session.notify('notifications/cancelled', params, caller.forwarded);
    }
    // The SDK's server never ends the stream of a cancelled request.
    this.#rpc?.abort(reason);
  }

  /**
   * Takes the answer stream of the call up again, as often as it breaks off and the backend goes on with it
   * (basic/transports, "Resumability and Redelivery"). A refusal to go on speaks of the stream and not of the request,
   * which was begun long before: it is never a reason to send that again.
   */
  async #resume(broken: RpcReply): Promise<RpcReply> {
    let reply = broken;
    let failures = 0;
    for (let n = 0; n < MAX_RESUMES && breaksOff(reply); n++) {
      // A server that ends its stream in mid-call wants nobody to hold a connection for the rest (SEP-1699).
      if (reply.broke !== true && reply.retryMs !== undefined) this.#exchange.detach();
      const pauseMs = Math.max(reply.retryMs ?? USUAL_RESUME_PAUSE_MS, SHORTEST_RESUME_PAUSE_MS);
      await pause(Math.min(pauseMs, LONGEST_RESUME_PAUSE_MS), this.#exchange.signal);
      const { forwarded } = this.#exchange.caller;
      const rpc = this.#session.resumeCall(this.#id, reply.lastEventId, forwarded, this);
      this.#rpc = rpc;
      const next = await rpc.reply;
      if (next.kind === 'failed' && next.error.failure !== 'aborted' && ++failures < MAX_FAILURES) continue;
      if (next.kind === 'failed' || next.status !== 200) return { ...reply, lastEventId: undefined };
      reply = next;
    }
    return reply;
  }
}

type BrokenOff = RpcReply & { readonly kind: 'no-response'; readonly lastEventId: string };

/** A stream that ended early and may be taken up again by its event ids. */
function breaksOff(reply: RpcReply): reply is BrokenOff {
  return reply.kind === 'no-response' && reply.status === 200 && reply.lastEventId !== undefined;
}
