import { EXCHANGE_ERRORS, exchangeError } from '../../../exchange/errors.js';

/** Limit of the notifications of one client that are sent at a time: each takes a connection until it is accepted. */
const MAX_IN_FLIGHT = 4;
/** Limits of the notifications of one client that are queued. */
const MAX_QUEUED = 1_000;
const MAX_QUEUED_BYTES = 1024 * 1024;
/** Limit of the notifications of all clients that are sent to one backend at a time. */
const MAX_AT_BACKEND = 256;

/** Bounds the notifications that are sent to one backend at a time. */
export class NotificationSlots {
  #free = MAX_AT_BACKEND;
  readonly #waiting = new Set<NotificationQueue>();

  /** Takes a slot; if none is free, returns false and flushes the queue when there is one. */
  take(queue: NotificationQueue): boolean {
    if (this.#free === 0) {
      this.#waiting.add(queue);
      return false;
    }
    this.#free--;
    return true;
  }

  release(): void {
    this.#free++;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next.flush();
  }
}

interface Queued {
  readonly send: () => Promise<unknown>;
  readonly bytes: number;
}

/** Sends the notifications of one client to its backend, in order, a few at a time. */
export class NotificationQueue {
  readonly #slots: NotificationSlots;
  readonly #queue: Queued[] = [];
  #queuedBytes = 0;
  #sending = 0;

  constructor(slots: NotificationSlots) {
    this.#slots = slots;
  }

  /**
   * @param send never rejects
   * @throws ExchangeError if too many wait
   */
  push(send: () => Promise<unknown>, bytes: number): void {
    if (this.#queue.length >= MAX_QUEUED || this.#queuedBytes + bytes > MAX_QUEUED_BYTES) {
      const what = 'notifications of one client that wait for the backend';
      throw exchangeError(EXCHANGE_ERRORS.ERAGATE_QUOTA, { limit: MAX_QUEUED, what });
    }
    this.#queue.push({ send, bytes });
    this.#queuedBytes += bytes;
    this.flush();
  }

  /** Sends queued notifications within the limits. */
  flush(): void {
    while (this.#queue.length > 0 && this.#sending < MAX_IN_FLIGHT && this.#slots.take(this)) {
      const { send, bytes } = this.#queue.shift() as Queued;
      this.#queuedBytes -= bytes;
      this.#sending++;
      void send().finally(() => {
        this.#sending--;
        this.#slots.release();
        this.flush();
      });
    }
  }

  /** Drops the queued notifications. */
  clear(): void {
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }
}
