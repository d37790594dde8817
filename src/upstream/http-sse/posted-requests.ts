import { type Frame, getMember, isSameId, type RequestId, textOf } from '../../jsonrpc/index.js';
import type { TransportError } from '../errors.js';
import type { PostedRequest } from './posted-request.js';
import type { StreamConsumer } from './stream-consumer.js';

const PROGRESS = 'notifications/progress';

/** The requests of a session that wait for their responses. */
export class PostedRequests {
  readonly #byId = new Map<RequestId, PostedRequest>();

  /** Messages without an id are not added: they get no response. */
  add(request: PostedRequest): void {
    if (request.id !== undefined) this.#byId.set(request.id, request);
  }

  remove(request: PostedRequest): void {
    if (request.id !== undefined && this.#byId.get(request.id) === request) this.#byId.delete(request.id);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The latest request. */
  get latest(): PostedRequest | undefined {
    return [...this.#byId.values()].at(-1);
  }

  /** The request that a message names: by the id of a response, or by a progress token, which equals the id. */
  ofFrame(frame: Frame): PostedRequest | undefined {
    if (frame.type === 'result' || frame.type === 'error') return this.#withId(frame.id);
    if (frame.type === 'request' || frame.method !== PROGRESS || frame.params === undefined) return undefined;
    const { bytes, params } = frame;
    const token = getMember(bytes, params, 'progressToken');
    const isToken = token?.kind === 'number' || token?.kind === 'string';
    return isToken ? this.#withId(textOf(bytes, token) as RequestId) : undefined;
  }

  /** Whether any request is not among these. */
  hasOtherThan(consumers: ReadonlySet<StreamConsumer>): boolean {
    return [...this.#byId.values()].some((request) => !consumers.has(request));
  }

  failAll(error: TransportError): void {
    for (const request of [...this.#byId.values()]) request.fail(error);
  }

  /** Servers that fail early write no id, or "server-error"; with one request waiting, that one is meant. */
  #withId(id: RequestId | undefined): PostedRequest | undefined {
    if (id === undefined || id === '"server-error"') {
      return this.#byId.size === 1 ? [...this.#byId.values()][0] : undefined;
    }
    const exact = this.#byId.get(id);
    if (exact !== undefined) return exact;
    for (const [given, request] of this.#byId) if (isSameId(given, id)) return request;
    return undefined;
  }
}
