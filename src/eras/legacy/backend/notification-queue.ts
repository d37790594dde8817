import { EXCHANGE_ERRORS, exchangeError } from '../../../exchange/errors.js';

/** Notifications of one client that are sent at a time: each takes a connection until the backend has accepted it. */
const MAX_AT_ONCE = 4;
/** Notifications of one client that wait for their turn, and their bytes. */
const MAX_WAITING = 1_000;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Notifications of all clients that are sent to one backend at a time. */
const MAX_AT_BACKEND = 256;

/** How many more notifications may be sent to a backend at once, and who waits for that. */
export class NotificationSlots {
  #free = MAX_AT_BACKEND;
  readonly #waiting = new Set<NotificationQueue>();

  /** @returns false where none is free; the queue is then told when one is */
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

interface Waiting {
  readonly send: () => Promise<unknown>;
  readonly bytes: number;
}

/** Sends the notifications of one client to its backend, in order, a few at a time. */
export class NotificationQueue {
  readonly #slots: NotificationSlots;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #sending = 0;

  constructor(slots: NotificationSlots) {
    this.#slots = slots;
  }

  /**
   * @param send never rejects
   * @throws ExchangeError if too many wait
   */
  push(send: () => Promise<unknown>, bytes: number): void {
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      const what = 'notifications of one client that wait for the backend';
      throw exchangeError(EXCHANGE_ERRORS.ERAGATE_QUOTA, { limit: MAX_WAITING, what });
    }
    this.#waiting.push({ send, bytes });
    this.#waitingBytes += bytes;
    this.flush();
  }

  /** Sends what may be sent now. */
  flush(): void {
    while (this.#waiting.length > 0 && this.#sending < MAX_AT_ONCE && this.#slots.take(this)) {
      const { send, bytes } = this.#waiting.shift() as Waiting;
      this.#waitingBytes -= bytes;
      this.#sending++;
      void send().finally(() => {
        this.#sending--;
        this.#slots.release();
        this.flush();
      });
    }
  }

  /** Drops what waits. */
  clear(): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
  }
}
