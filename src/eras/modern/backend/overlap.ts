import { deferred } from '../../../exchange/utils/deferred.js';

export interface OverlapOptions {
  /** How long the older stream is still read after the newer one is open, in milliseconds. */
  readonly overlapMs: number;
  /** Longest time between the two notifications of one change, in milliseconds. */
  readonly apartMs: number;
}

const DEFAULTS: OverlapOptions = { overlapMs: 150, apartMs: 75 };

export type StreamAge = 'older' | 'newer';

/** Notifications of one subject that have come on one of the streams only. */
interface Unmatched {
  readonly stream: StreamAge;
  /** When they came, on the monotonic clock. */
  readonly at: number[];
}

/**
 * The time in which one stream of changes replaces another (make before break): changes on the older one are not lost,
 * and a change that comes on both is passed on once.
 */
export class Overlap {
  readonly #done = deferred<void>();
  readonly #closeOlder: () => void;
  readonly #options: OverlapOptions;
  readonly #unmatched = new Map<string, Unmatched>();
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(closeOlder: () => void, options = DEFAULTS) {
    this.#closeOlder = closeOlder;
    this.#options = options;
  }

  /** Resolves when the older stream is closed. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** The newer stream is open: closes the older one after the overlap. */
  begin(): void {
    if (!this.#over) this.#timer = setTimeout(() => this.end(), this.#options.overlapMs).unref();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#closeOlder();
    this.#done.resolve();
  }

  /** Whether a change is new: it has not come on the other stream already. */
  isNew(subject: string, stream: StreamAge): boolean {
    if (this.#over) return true;
    const now = performance.now();
    const unmatched = this.#unmatched.get(subject);
    const at = unmatched?.at.filter((time) => now - time < this.#options.apartMs) ?? [];
    const isNew = at.length === 0 || unmatched?.stream === stream;
    if (isNew) at.push(now);
    else at.shift();
    const other = stream === 'older' ? 'newer' : 'older';
    this.#unmatched.set(subject, { stream: isNew ? stream : other, at });
    return isNew;
  }
}
