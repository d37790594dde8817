/** A running process that counts. */
export interface CountedProcess {
  /** When it last had a request in flight, on the monotonic clock; infinite while it has one. */
  readonly unusedSince: number;
  /** Ends it, so that another can be started. */
  evict(): void;
}

/** A process that was used more recently is not ended for another one. */
const EVICT_AFTER_MS = 5_000;
/** Part of the limit that may be ending beside as many that run: a process may take seconds to end. */
const ENDING_SHARE = 1 / 8;

/** Limits the processes of all backends together. At the limit the one that is unused for longest gives way. */
export class ProcessLimit {
  readonly max: number;
  readonly #running = new Set<CountedProcess>();
  /** Evicted, and not gone yet. */
  readonly #evicted = new Set<CountedProcess>();

  constructor(max: number) {
    this.max = max;
  }

  get count(): number {
    return this.#running.size + this.#evicted.size;
  }

  /** Makes room for one more process; returns false where there is none. */
  makeRoom(): boolean {
    if (this.count < this.max) return true;
    if (this.#running.size >= this.max && !this.#evict()) return false;
    return this.count < this.max + Math.ceil(this.max * ENDING_SHARE);
  }

  add(process: CountedProcess): void {
    this.#running.add(process);
  }

  /** The process is gone. */
  remove(process: CountedProcess): void {
    this.#running.delete(process);
    this.#evicted.delete(process);
  }

  #evict(): boolean {
    if (this.count >= this.max + Math.ceil(this.max * ENDING_SHARE)) return false;
    let oldest: CountedProcess | undefined;
    for (const process of this.#running)
      if (oldest === undefined || process.unusedSince < oldest.unusedSince) oldest = process;
    if (oldest === undefined || performance.now() - oldest.unusedSince < EVICT_AFTER_MS) return false;
    this.#running.delete(oldest);
    this.#evicted.add(oldest);
    oldest.evict();
    return true;
  }
}
