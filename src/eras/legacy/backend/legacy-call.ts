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
import { respondTo, type ServerRequestHandler } from './server-requests.js';
import type { BackendSession } from './session.js';

/** Params that a modern client sends with a retry, which no legacy server knows. */
const RETRY_MEMBERS: ReadonlyMap<string, undefined> = new Map([
  ['inputResponses', undefined],
  ['requestState', undefined],
]);
/** The same for `tools/call`, which `task` would make a task in this era. */
const CALL_MEMBERS: ReadonlyMap<string, undefined> = new Map([...RETRY_MEMBERS, ['task', undefined]]);
/** Limits of the pause that a server may set by `retry`. */
const SHORTEST_RESUME_PAUSE_MS = 20;
const LONGEST_RESUME_PAUSE_MS = 10_000;
/** High, since some servers make their clients poll by ending each stream after a while. */
const MAX_RESUMES = 1_000;
/** Limit of the connections that fail. */
const MAX_FAILURES = 3;

/** Edits that remove params of the modern era; undefined if there are none. */
function withoutModernMembers({ request, caller }: Exchange): Edits | undefined {
  const { bytes, node } = request.params;
  if (caller.era === 'legacy' || node === undefined) return undefined;
  const names = request.method === 'tools/call' ? CALL_MEMBERS : RETRY_MEMBERS;
  for (const key of names.keys()) if (getMember(bytes, node, key) !== undefined) return names;
  return undefined;
}

/** An exchange on a backend session: the request, its notifications and server requests, its cancellation. */
export class LegacyCall implements RpcListener, ServerRequestHandler, ExchangeObserver {
  readonly #exchange: Exchange;
  readonly #session: BackendSession;
  #id = 0;
  #rpc: RpcCall | undefined;
  #done = false;
  #undelivered: ExchangeError | undefined;
  readonly #onChange: (frame: NotificationFrame) => void;
  readonly #roots: Roots;

  /** @param onChange called for each change that is notified on the response stream */
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
   * Sends the request and waits for its reply.
   * @param edits to the params; by default those that the server's era and revision require
   * @throws ExchangeError if the exchange is cancelled, or an answer of the client does not reach the server
   */
  async run(edits: Edits | undefined = this.#edits()): Promise<RpcReply> {
    const { request, caller, cancelled: reason } = this.#exchange;
    if (reason !== undefined) throw cancelled(reason);
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
      reply = isResumable(first) ? await this.#resume(first) : first;
    } finally {
      this.#done = true;
      observing[Symbol.dispose]();
    }
    this.#exchange.notes.backendMs = performance.now() - startedAt;
    if (this.#undelivered !== undefined) throw this.#undelivered;
    if (this.#exchange.cancelled !== undefined) throw cancelled(this.#exchange.cancelled);
    return reply;
  }

  /** Removes params that the backend would not understand, or misunderstand. */
  #edits(): Edits | undefined {
    const { revision } = this.#session.info;
    return (
      withoutModernMembers(this.#exchange) ??
      downgradeParams(this.#exchange.request.method, featuresFor(revision))
    );
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (isChange(frame.method)) this.#onChange(frame);
    const exchange = this.#exchange;
    const message = serverMessageFor(exchange, frame, String(this.#id));
    if (message === undefined || exchange.notify(message)) return undefined;
    return (resume) => exchange.onDrain(resume);
  }

  /** Handles a server request on the call's own stream, or on the GET stream of a session that it uses alone. */
  onRequest(frame: RequestFrame): void {
    void respondTo(this.#session, frame, this);
  }

  get forwarded(): ForwardedHeaders {
    return this.#exchange.caller.forwarded;
  }

  get over(): boolean {
    return this.#done;
  }

  answerTo(request: ServerRequest): Promise<ClientAnswer> {
    const { caller } = this.#exchange;
    const ask = (): Promise<ClientAnswer> => this.#exchange.ask(request);
    const isOfRoots = request.method === 'roots/list' && caller.era !== 'legacy';
    return isOfRoots ? this.#roots.answer(caller, ask) : ask();
  }

  onUndelivered(error: ExchangeError): void {
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
   * Resumes the response stream of the call each time it ends early (basic/transports, "Resumability and Redelivery"). If
   * the backend refuses, the request is not sent again: it was begun before.
   */
  async #resume(broken: RpcReply): Promise<RpcReply> {
    let reply = broken;
    let failures = 0;
    for (let n = 0; n < MAX_RESUMES && isResumable(reply); n++) {
      // A server that ends the stream of a call expects its client to disconnect until then (SEP-1699).
      if (reply.broke !== true && reply.retryMs !== undefined) this.#exchange.detach();
      const pauseMs = Math.max(
        reply.retryMs ?? this.#session.backend.times.resumePauseMs,
        SHORTEST_RESUME_PAUSE_MS,
      );
      await pause(Math.min(pauseMs, LONGEST_RESUME_PAUSE_MS), this.#exchange.signal);
      const { forwarded } = this.#exchange.caller;
      const rpc = this.#session.resume(this.#id, reply.lastEventId, forwarded, this);
      this.#rpc = rpc;
      const next = await rpc.reply;
      if (next.kind === 'failed' && next.error.failure !== 'aborted' && ++failures < MAX_FAILURES) continue;
      if (next.kind === 'failed' || next.status !== 200) return { ...reply, lastEventId: undefined };
      reply = next;
    }
    return reply;
  }
}

type Resumable = RpcReply & { readonly kind: 'no-response'; readonly lastEventId: string };

/** Whether a stream ended early and can be resumed by its event ids. */
function isResumable(reply: RpcReply): reply is Resumable {
  return reply.kind === 'no-response' && reply.status === 200 && reply.lastEventId !== undefined;
}
