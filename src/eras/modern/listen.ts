import { type Change, type ChangeFilter, changeNotification, isEmpty } from '../../exchange/changes.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { Subscriber } from '../../exchange/hub.js';
import { type RequestId, Rope, resultRope } from '../../jsonrpc/index.js';
import type { Answer } from '../../transports/answer.js';
import { filterText } from './changes.js';
import { META } from './names.js';

/** Changes that may come before the acknowledgement is out. */
const MAX_EARLY = 1_000;

/**
 * The stream of one `subscriptions/listen` request on a backend of another era (basic/patterns/subscriptions): the
 * acknowledgement first, then what changes, each under the id of the request.
 */
export class Listening implements Subscriber {
  readonly #exchange: Exchange;
  readonly #answer: Answer;
  readonly #tag: ReadonlyMap<string, string>;
  #early: Change[] | undefined = [];

  constructor(exchange: Exchange, answer: Answer) {
    this.#exchange = exchange;
    this.#answer = answer;
    this.#tag = new Map([[META.subscriptionId, exchange.request.id]]);
  }

  /** Tells what of the filter is really heard of; nothing at all ends the subscription at once. */
  acknowledge(honoured: ChangeFilter): void {
    const { id } = this.#exchange.request;
    const params = `{"_meta":{"${META.subscriptionId}":${id}},"notifications":${filterText(honoured)}}`;
    this.#answer.openStream();
    this.#answer.event(
      new Rope().push(
        `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`,
      ),
    );
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const change of early) this.onChange(change);
    if (isEmpty(honoured)) this.#exchange.cancel('nothing of the filter can be heard of');
  }

  onChange(change: Change): void {
    if (this.#early !== undefined) {
      if (this.#early.length < MAX_EARLY) this.#early.push(change);
      return;
    }
    // A reader that does not keep up is told that the subscription is over: it knows then that it missed something.
    if (!this.#answer.event(changeNotification(change, this.#tag)))
      this.#exchange.cancel('the client reads too slowly');
  }
}

/** The result that ends a subscription gracefully. */
export function listenEnd(id: RequestId): Rope {
  return resultRope(
    id,
    new Rope().push(`{"resultType":"complete","_meta":{"${META.subscriptionId}":${id}}}`),
  );
}
