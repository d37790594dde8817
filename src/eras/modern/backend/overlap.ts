/** How long the stream that is replaced is read on, once the one that replaces it tells of changes. */
const OVERLAP_MS = 150;
/** How far apart the two streams may tell of the same change. */
const APART_MS = 75;

interface ToldByOne {
  readonly byOlder: boolean;
  /** When, on the monotonic clock. */
  readonly at: number[];
}

/**
 * The time in which one stream of changes takes the place of another. What was on its way on the older one is not lost,
 * and what both tell is told once.
 */
export class Overlap {
  /** Resolves when the older stream has been closed. */
  readonly done: Promise<void>;
  readonly #closeOlder: () => void;
  readonly #told = new Map<string, ToldByOne>();
  #resolve!: () => void;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(closeOlder: () => void) {
    this.#closeOlder = closeOlder;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The newer stream tells of changes now. */
  begin(): void {
    if (!this.#over) this.#timer = setTimeout(() => this.end(), OVERLAP_MS).unref();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#closeOlder();
    this.#resolve();
  }

  /** Whether a change of this subject has not come on the other stream as well. */
  isNews(subject: string, byOlder: boolean): boolean {
    if (this.#over) return true;
    const now = performance.now();
    const told = this.#told.get(subject);
    const at = told?.at.filter((time) => now - time < APART_MS) ?? [];
    const isNews = at.length === 0 || told?.byOlder === byOlder;
    if (isNews) at.push(now);
    else at.shift();
    this.#told.set(subject, { byOlder: isNews ? byOlder : !byOlder, at });
    return isNews;
  }
}
