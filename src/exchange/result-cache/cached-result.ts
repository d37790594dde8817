/** How long a result may be cached. */
export interface Freshness {
  readonly ttlMs: number;
  /** The hint for clients; less than `ttlMs` where only the gateway is notified of changes. */
  readonly hintMs: number;
  /** The result is the same for every caller. */
  readonly shared: boolean;
  /** The stream on which changes are notified. The result is stale once it ends. */
  readonly watch?: { readonly live: boolean };
}

/** A cached result, with its texts: the text of each form is written once. */
export class CachedResult {
  readonly freshness: Freshness;
  readonly #storedAt = performance.now();
  readonly #texts = new Map<string, Buffer>();

  constructor(freshness: Freshness) {
    this.freshness = freshness;
  }

  /** Age in milliseconds. */
  get age(): number {
    return performance.now() - this.#storedAt;
  }

  get fresh(): boolean {
    const { ttlMs, watch } = this.freshness;
    return this.age < ttlMs && watch?.live !== false;
  }

  /** The hint for clients now, in milliseconds. */
  get hintMs(): number {
    return this.fresh ? Math.max(0, this.freshness.hintMs - Math.floor(this.age)) : 0;
  }

  /** The text in the form of that name; `render` writes it the first time. */
  text(form: string, render: () => Buffer): Buffer {
    let text = this.#texts.get(form);
    if (text === undefined) {
      text = render();
      this.#texts.set(form, text);
    }
    return text;
  }
}
