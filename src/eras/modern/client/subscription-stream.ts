import type { ClientResponse } from '../../../downstream/response.js';
import { type Change, changeNotification, subjectOf } from '../../../exchange/changes/change.js';
import { type ChangeFilter, isEmpty, matches } from '../../../exchange/changes/change-filter.js';
import type { Subscriber } from '../../../exchange/changes/subscription.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { type RequestId, Rope, resultRope } from '../../../jsonrpc/index.js';
import { filterText } from '../wire/change-filter.js';
import { META } from '../wire/names.js';

/** Limit of the changes that are kept until the acknowledgement. */
const MAX_EARLY = 2_000;

/**
 * The event stream of one `subscriptions/listen` request to a backend of another era (basic/patterns/subscriptions): the
 * acknowledgement, then a notification for each change, with the id of the request as the subscription id.
 */
export class SubscriptionStream implements Subscriber {
  readonly #exchange: Exchange;
  readonly #response: ClientResponse;
  readonly #wanted: ChangeFilter;
  readonly #tag: ReadonlyMap<string, string>;
  /** Changes that came before the acknowledgement, which has to be the first event; undefined after it. */
  #early: Map<string, Change> | undefined = new Map();

  constructor(exchange: Exchange, response: ClientResponse, wanted: ChangeFilter) {
    this.#exchange = exchange;
    this.#response = response;
    this.#wanted = wanted;
    this.#tag = new Map([[META.subscriptionId, exchange.request.id]]);
  }

  /**
   * Writes the acknowledgement with the part of the filter that the backend honours. Changes of other lists in the filter
   * are passed on too, since some servers notify of them without declaring it. A subscription to which no notification can
   * come ends at once.
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
    const possible = { lists: this.#wanted.lists, resources: honoured.resources };
    for (const change of early.values()) if (matches(possible, change)) this.onChange(change);
    if (isEmpty(possible)) this.#exchange.cancel('the backend notifies of nothing in the filter');
  }

  onChange(change: Change): void {
    if (this.#exchange.cancelled !== undefined) return;
    if (this.#early !== undefined) {
      this.#early.set(subjectOf(change), change);
      if (this.#early.size > MAX_EARLY) this.#exchange.cancel('too many changes before the acknowledgement');
      return;
    }
    // Ending the subscription tells a slow client that it has missed changes.
    if (!this.#response.writeEvent(changeNotification(change, this.#tag)))
      this.#exchange.cancel('the client reads too slowly');
  }

  /** Ends the subscription: the acknowledgement of a new one says what the backend still honours. */
  onNarrowed(): void {
    this.#exchange.cancel('the backend no longer honours the whole filter');
  }
}

/** The result that ends a subscription (basic/patterns/subscriptions). */
export function listenEnd(id: RequestId): Rope {
  return resultRope(
    id,
    new Rope().push(`{"resultType":"complete","_meta":{"${META.subscriptionId}":${id}}}`),
  );
}
