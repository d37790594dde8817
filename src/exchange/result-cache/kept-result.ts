/** How long a result may be kept, as the outbound side knows it. */
export interface Freshness {
  readonly ttlMs: number;
  /** What clients may be told of it; less where the gateway hears of changes and they do not. */
  readonly hintMs: number;
  /** The same for every caller. */
  readonly shared: boolean;
  /** What it rests on that changes are heard of: once this ends, the result is not good any more. */
  readonly watch?: { readonly live: boolean };
}

/** A result that is kept, with the texts in which it has gone out: they are written once for each form. */
export class Kept {
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

  /** Milliseconds for which a client may still keep the result. */
  get hintMs(): number {
    return this.fresh ? Math.max(0, this.freshness.hintMs - Math.floor(this.age)) : 0;
  }

  /** The result in the form of that name, made by `render` where it is not there yet. */
  text(form: string, render: () => Buffer): Buffer {
    let text = this.#texts.get(form);
    if (text === undefined) {
      text = render();
      this.#texts.set(form, text);
    }
    return text;
  }
}
