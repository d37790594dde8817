/** Limits the processes of all backends together. */
export class ProcessLimit {
  readonly max: number;
  #count = 0;

  constructor(max: number) {
    this.max = max;
  }

  get count(): number {
    return this.#count;
  }

  /** @returns false where the limit is reached */
  take(): boolean {
    if (this.#count >= this.max) return false;
    this.#count++;
    return true;
  }

  release(): void {
    this.#count--;
  }
}
