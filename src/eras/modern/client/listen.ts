import type { ClientResponse } from '../../../downstream/response.js';
import {
  type Change,
  type ChangeFilter,
  changeNotification,
  isEmpty,
  matches,
  subjectOf,
} from '../../../exchange/changes.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { Subscriber } from '../../../exchange/hub.js';
import { getMember, type RequestFrame, type RequestId, Rope, resultRope } from '../../../jsonrpc/index.js';
import { filterText, readFilter } from '../wire/change-filter.js';
import { META } from '../wire/names.js';

/** Resources in one filter. */
const MAX_RESOURCES = 1_000;
/** Changes that may come before the acknowledgement is out. */
const MAX_EARLY = 2_000;

/** The filter of a `subscriptions/listen` request, or what is wrong with it. */
export function wantedFilter({ bytes, params }: RequestFrame): ChangeFilter | string {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  const filter = readFilter(bytes, node);
  return typeof filter === 'string' || filter.resources.size <= MAX_RESOURCES
    ? filter
    : `params.notifications.resourceSubscriptions must not hold more than ${MAX_RESOURCES}`;
}

/** Whether a `subscriptions/listen` request names tasks to be told of. */
export function namesTasks({ bytes, params }: RequestFrame): boolean {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  return node?.kind === 'object' && getMember(bytes, node, 'taskIds') !== undefined;
}

/**
 * The stream of one `subscriptions/listen` request on a backend of another era (basic/patterns/subscriptions): the
 * acknowledgement first, then what changes, each under the id of the request.
 */
export class Listening implements Subscriber {
  readonly #exchange: Exchange;
  readonly #response: ClientResponse;
  readonly #wanted: ChangeFilter;
  readonly #tag: ReadonlyMap<string, string>;
  /** Until the acknowledgement: what is to be told after it. */
  #early: Map<string, Change> | undefined = new Map();

  constructor(exchange: Exchange, response: ClientResponse, wanted: ChangeFilter) {
    this.#exchange = exchange;
    this.#response = response;
    this.#wanted = wanted;
    this.#tag = new Map([[META.subscriptionId, exchange.request.id]]);
  }

  /**
   * Tells what of the filter the backend agreed to. A list may be told of all the same, as servers do that do not
   * declare it; where nothing can come at all, the subscription ends at once.
   */
  acknowledge(honoured: ChangeFilter): void {
    const { id } = this.#exchange.request;
    const params = `{"_meta":{"${META.subscriptionId}":${id}},"notifications":${filterText(honoured)}}`;
    this.#response.writeEvent(
      new Rope().push(
        `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`,
      ),
    );
    const early = this.#early ?? new Map<string, Change>();
    this.#early = undefined;
    const heard = { lists: this.#wanted.lists, resources: honoured.resources };
    for (const change of early.values()) if (matches(heard, change)) this.onChange(change);
    if (isEmpty(heard)) this.#exchange.cancel('nothing of the filter can be heard of');
  }

  onChange(change: Change): void {
    if (this.#exchange.cancelled !== undefined) return;
    if (this.#early !== undefined) {
      this.#early.set(subjectOf(change), change);
      if (this.#early.size > MAX_EARLY) this.#exchange.cancel('too much has changed at once');
      return;
    }
    // A reader that does not keep up is told that the subscription is over: it knows then that it missed something.
    if (!this.#response.writeEvent(changeNotification(change, this.#tag)))
      this.#exchange.cancel('the client reads too slowly');
  }

  /** The client may ask again, and learns what is still to be heard. */
  onNarrowed(): void {
    this.#exchange.cancel('the backend does not tell of all that it agreed to any more');
  }
}

/** The result that ends a subscription gracefully. */
export function listenEnd(id: RequestId): Rope {
  return resultRope(
    id,
    new Rope().push(`{"resultType":"complete","_meta":{"${META.subscriptionId}":${id}}}`),
  );
}
