import { type Change, changeOf, isChange, subjectOf } from '../../../exchange/changes/change.js';
import { type ChangeFilter, isEmpty, NO_CHANGES } from '../../../exchange/changes/change-filter.js';
import type { ChangeSource, ChangeSourceListener } from '../../../exchange/changes/change-source.js';
import { exchangeError } from '../../../exchange/errors.js';
import { deferred } from '../../../exchange/utils/deferred.js';
import { getMember, type NotificationFrame, Rope } from '../../../jsonrpc/index.js';
import type { RpcCall, RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import { filterText, readFilter } from '../wire/change-filter.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';
import { Overlap } from './overlap.js';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** Opens a `subscriptions/listen` stream to a backend. */
export type ListenOpener = (params: Rope, listener: RpcListener) => RpcCall;

export interface ModernChangeSourceOptions {
  readonly open: ListenOpener;
  /** The error for a reply that is not an acknowledgement. */
  readonly failure: (reply: RpcReply) => Error;
  /** Longest time for the acknowledgement, in milliseconds. */
  readonly ackMs: number;
  /** For messages. */
  readonly route: string;
}

/**
 * Receives the changes of a modern backend on one `subscriptions/listen` stream. When the filter changes, another stream
 * replaces it (make before break).
 */
export class ModernChangeSource implements ChangeSource {
  readonly #options: ModernChangeSourceOptions;
  readonly #listener: ChangeSourceListener;
  #stream: ListenStream | undefined;
  /** The stream that is being replaced. */
  #older: ListenStream | undefined;
  #overlap: Overlap | undefined;
  #closed = false;

  constructor(options: ModernChangeSourceOptions, listener: ChangeSourceListener) {
    this.#options = options;
    this.#listener = listener;
  }

  async apply(filter: ChangeFilter): Promise<ChangeFilter> {
    await this.#overlap?.done;
    this.#overlap = undefined;
    const older = this.#stream;
    if (isEmpty(filter)) {
      this.#stream = undefined;
      older?.close();
      return NO_CHANGES;
    }
    this.#older = older;
    this.#overlap = older === undefined ? undefined : new Overlap(() => older.close());
    const stream: ListenStream = new ListenStream(filter, this.#options, {
      onChange: (change) => this.#onChange(stream, change),
      onEnd: () => this.#onEnd(stream),
    });
    let honoured: ChangeFilter;
    try {
      honoured = await stream.acknowledged;
    } catch (error) {
      this.#overlap = undefined;
      throw error;
    }
    this.#stream = stream;
    this.#overlap?.begin();
    if (this.#closed) this.close();
    else if (stream.ended) this.#onEnd(stream);
    return honoured;
  }

  close(): void {
    this.#closed = true;
    this.#overlap?.end();
    this.#stream?.close();
  }

  #onChange(stream: ListenStream, change: Change): void {
    if (this.#overlap?.isNew(subjectOf(change), stream === this.#older ? 'older' : 'newer') !== false)
      this.#listener.onChange(change);
  }

  #onEnd(stream: ListenStream): void {
    if (stream === this.#older) this.#overlap?.end();
    if (stream !== this.#stream || this.#closed) return;
    this.#stream = undefined;
    this.#listener.onDown();
  }
}

interface ListenStreamEvents {
  onChange(change: Change): void;
  /** The backend has ended the stream. */
  onEnd(): void;
}

/** One `subscriptions/listen` stream of a backend. */
class ListenStream implements RpcListener {
  /** No further change comes on it. */
  ended = false;
  readonly #rpc: RpcCall;
  readonly #events: ListenStreamEvents;
  readonly #acknowledged = deferred<ChangeFilter>();

  constructor(
    filter: ChangeFilter,
    { open, failure, ackMs, route }: ModernChangeSourceOptions,
    events: ListenStreamEvents,
  ) {
    this.#events = events;
    this.#rpc = open(new Rope().push(filterText(filter)), this);
    const { promise, reject } = this.#acknowledged;
    const timer = setTimeout(() => {
      reject(exchangeError(MODERN_BACKEND_ERRORS.ERAGATE_SUBSCRIPTION_NOT_ACKNOWLEDGED, { route }));
      this.close();
    }, ackMs);
    // A failure shows to the one that waits for the acknowledgement, if any.
    promise.catch(() => {}).finally(() => clearTimeout(timer));
    void this.#rpc.reply.then((reply) => {
      const closed = this.ended;
      this.ended = true;
      reject(
        isRefusal(reply)
          ? failure(reply)
          : exchangeError(MODERN_BACKEND_ERRORS.ERAGATE_SUBSCRIPTION_ENDED, { route }),
      );
      if (!closed) events.onEnd();
    });
  }

  /** The filter that the backend acknowledged; rejected if it refuses, or does not acknowledge in time. */
  get acknowledged(): Promise<ChangeFilter> {
    return this.#acknowledged.promise;
  }

  close(): void {
    this.ended = true;
    this.#rpc.abort('the subscription is closed');
  }

  onNotification(frame: NotificationFrame): undefined {
    const { method, bytes, params } = frame;
    if (method === ACKNOWLEDGED) {
      const filter = readFilter(
        bytes,
        params === undefined ? undefined : getMember(bytes, params, 'notifications'),
      );
      this.#acknowledged.resolve(typeof filter === 'string' ? NO_CHANGES : filter);
    } else if (isChange(method)) this.#events.onChange(changeOf(frame));
  }

  onRequest(): void {}
}

function isRefusal(reply: RpcReply): boolean {
  return reply.kind !== 'response' || reply.frame.type === 'error';
}
