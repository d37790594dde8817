/**
 * Does large pieces of work one after the other, each in a turn of the event loop of its own, so that small requests are
 * served between two of them, and only one of them has its memory at a time.
 */
export class Turns {
  readonly #waiting: (() => void | Promise<void>)[] = [];
  #busy = false;

  /** @param work never throws, and never rejects */
  run(work: () => void | Promise<void>): void {
    this.#waiting.push(work);
    if (this.#busy) return;
    this.#busy = true;
    setImmediate(this.#next);
  }

  readonly #next = async (): Promise<void> => {
    await this.#waiting.shift()?.();
    if (this.#waiting.length === 0) this.#busy = false;
    else setImmediate(this.#next);
  };
}

/** The large bodies of all requests. */
export const LARGE_BODIES = new Turns();
