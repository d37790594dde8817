import { type Frame, getMember, isSameId, type RequestId, textOf } from '../../jsonrpc/index.js';
import type { TransportError } from '../errors.js';
import type { Receiver, StreamCall } from './posted-request.js';

const PROGRESS = 'notifications/progress';

/** The requests of a session that wait for a response on its stream. */
export class Calls {
  readonly #byId = new Map<RequestId, StreamCall>();

  /** Messages without an id wait for nothing. */
  add(call: StreamCall): void {
    if (call.id !== undefined) this.#byId.set(call.id, call);
  }

  remove(call: StreamCall): void {
    if (call.id !== undefined && this.#byId.get(call.id) === call) this.#byId.delete(call.id);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The one that came last. */
  get last(): StreamCall | undefined {
    return [...this.#byId.values()].at(-1);
  }

  /** The call that a message names: by the id of a response, or by the token of progress, which is the same. */
  ofFrame(frame: Frame): StreamCall | undefined {
    if (frame.type === 'result' || frame.type === 'error') return this.#of(frame.id);
    if (frame.type === 'request' || frame.method !== PROGRESS || frame.params === undefined) return undefined;
    const { bytes, params } = frame;
    const token = getMember(bytes, params, 'progressToken');
    const isToken = token?.kind === 'number' || token?.kind === 'string';
    return isToken ? this.#of(textOf(bytes, token) as RequestId) : undefined;
  }

  someNotIn(others: ReadonlySet<Receiver>): boolean {
    return [...this.#byId.values()].some((call) => !others.has(call));
  }

  /** No response can come any more. */
  failAll(error: TransportError): void {
    for (const call of [...this.#byId.values()]) call.fail(error);
  }

  /** Servers that fail early write no id, or one of their own: it can only mean the one call that there is. */
  #of(id: RequestId | undefined): StreamCall | undefined {
    if (id === undefined || id === '"server-error"') {
      return this.#byId.size === 1 ? [...this.#byId.values()][0] : undefined;
    }
    const exact = this.#byId.get(id);
    if (exact !== undefined) return exact;
    for (const [given, call] of this.#byId) if (isSameId(given, id)) return call;
    return undefined;
  }
}
