import type { Caller } from '../../../exchange/caller.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import type { Ticker } from '../../../exchange/utils/ticker.js';
import { numberId, Rope, requestRope } from '../../../jsonrpc/index.js';
import { RpcCall, type RpcListener, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import type { Transport } from '../../../upstream/transport.js';
import { META, MODERN_VERSION, NAMED_BY } from '../wire/names.js';
import { namesOwnVersion } from './refusals.js';
import { requestHeaders } from './request-headers.js';

const LISTEN = 'subscriptions/listen';

export interface RequestsOptions {
  readonly transport: Transport;
  readonly ticker: Ticker;
  /** JSON text of the Implementation object for clients that do not send one. */
  readonly ownInfo: string;
}

export interface RequestLimits {
  /** Longest time for the reply, in milliseconds. */
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Writes the envelopes and headers of requests to a modern backend, and sends requests of the gateway's own. */
export class ModernRequests {
  readonly #options: RequestsOptions;
  #nextId = 1;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  nextId(): number {
    return this.#nextId++;
  }

  /** Headers of a request, as alternating names and values. */
  headers(caller: Caller, method: string, name: string | undefined): string[] {
    return requestHeaders(method, name, caller.forwarded);
  }

  /** The members of `_meta` that describe the sender. */
  envelope(caller: Caller): Map<string, string> {
    const { capabilities, neutralCapabilities, era } = caller;
    const envelope = new Map<string, string>([
      [META.protocolVersion, `"${MODERN_VERSION}"`],
      [META.clientInfo, caller.clientInfo ?? this.#options.ownInfo],
      [META.clientCapabilities, (era === 'modern' ? capabilities : neutralCapabilities).text],
    ]);
    if (caller.logLevel !== undefined) envelope.set(META.logLevel, `"${caller.logLevel}"`);
    return envelope;
  }

  /** The first members of the params of a request of the gateway's own; the object stays open. */
  #ownParams(caller: Caller): Rope {
    const meta = [...this.envelope(caller)].map(([key, value]) => `${JSON.stringify(key)}:${value}`);
    return new Rope().push(`{"_meta":{${meta.join(',')}}`);
  }

  /**
   * Sends a request of the gateway's own on behalf of a caller.
   * @param params by name; a `Rope` is JSON text
   * @throws the reason of the signal
   */
  async request(
    caller: Caller,
    method: string,
    params: Record<string, unknown> | undefined,
    limits: RequestLimits,
  ): Promise<RpcReply> {
    const deadline = performance.now() + limits.limitMs;
    const send = (): Promise<RpcReply> => this.#sendOwn(caller, method, params, limits, deadline);
    const reply = await send();
    return namesOwnVersion(reply) ? send() : reply;
  }

  async #sendOwn(
    caller: Caller,
    method: string,
    params: Record<string, unknown> | undefined,
    { limitMs, signal }: RequestLimits,
    deadline: number,
  ): Promise<RpcReply> {
    signal?.throwIfAborted();
    const { transport, ticker } = this.#options;
    const id = numberId(this.nextId());
    const all = this.#ownParams(caller);
    for (const [key, value] of Object.entries(params ?? {}))
      all.push(`,"${key}":`).push(value instanceof Rope ? value : JSON.stringify(value));
    const key = NAMED_BY.get(method);
    const name = key === undefined ? undefined : params?.[key];
    const headers = this.headers(caller, method, typeof name === 'string' ? name : undefined);
    const body = requestRope(id, method, all.push('}'));
    const rpc = new RpcCall(id, ticker, SILENT);
    const expire = (): void => rpc.abort(`no answer to ${method} within ${limitMs} ms`);
    const timer = setTimeout(expire, deadline - performance.now()).unref();
    const abort = (): void => rpc.abort('the exchange was cancelled');
    signal?.addEventListener('abort', abort);
    const reply = await rpc.post({ transport, headers, body, repeatable: isRepeatable(method) }).reply;
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    signal?.throwIfAborted();
    return reply;
  }

  /** Opens a `subscriptions/listen` stream on behalf of a caller. */
  listen(caller: Caller, filter: Rope, listener: RpcListener): RpcCall {
    const { transport, ticker } = this.#options;
    const id = numberId(this.nextId());
    const params = this.#ownParams(caller).push(',"notifications":').push(filter).push('}');
    const rpc = new RpcCall(id, ticker, listener);
    const body = requestRope(id, LISTEN, params);
    return rpc.post({
      transport,
      headers: this.headers(caller, LISTEN, undefined),
      body,
      repeatable: isRepeatable(LISTEN),
    });
  }
}
