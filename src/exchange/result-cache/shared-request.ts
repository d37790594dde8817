import type { Exchange } from '../exchange.js';
import type { Outcome } from '../outcome.js';
import { deferred } from '../utils/deferred.js';

/** How a shared request ended, for the others that wait for it. */
export type SharedEnd =
  | { readonly outcome: Outcome }
  | { readonly error: unknown }
  /** Its client cancelled it: the next one sends it. */
  | 'abandoned'
  /** The outcome is for its client only: each of the others sends its own. */
  | 'private';

/** A request in flight whose outcome serves every equal request that comes meanwhile. */
export class SharedRequest {
  readonly method: string;
  /** Of a resource. */
  readonly uri: string | undefined;
  readonly #end = deferred<SharedEnd>();
  #outdated = false;

  constructor({ method, name }: Exchange['request']) {
    this.method = method;
    this.uri = name;
  }

  get ended(): Promise<SharedEnd> {
    return this.#end.promise;
  }

  /** Only the first call counts. */
  end(end: SharedEnd): void {
    this.#end.resolve(end);
  }

  /** A change invalidated the outcome before it came. */
  get outdated(): boolean {
    return this.#outdated;
  }

  markOutdated(): void {
    this.#outdated = true;
  }
}
