interface Entry<T> {
  readonly bytes: Uint8Array;
  readonly value: T;
  readonly pinned: boolean;
}

/**
 * Caches a value for each text, keyed by the bytes of the text: decoding a string only to look it up costs more than
 * comparing bytes. Each text has one slot; a later text replaces the one in its slot unless that is pinned.
 */
export class ByteTable<T> {
  readonly #slots: (Entry<T> | undefined)[];
  readonly #mask: number;

  /** @param size number of slots, a power of two */
  constructor(size: number) {
    this.#slots = new Array(size).fill(undefined);
    this.#mask = size - 1;
  }

  /** The value for bytes `[start, end)`; undefined if it is not cached. */
  get(bytes: Uint8Array, start: number, end: number): T | undefined {
    const entry = this.#slots[slotOf(bytes, start, end) & this.#mask];
    if (entry === undefined || entry.bytes.length !== end - start) return undefined;
    return sameBytes(entry.bytes, bytes, start) ? entry.value : undefined;
  }

  /** Caches the value for bytes `[start, end)`, which are copied; does nothing where the slot is pinned. */
  set(bytes: Uint8Array, start: number, end: number, value: T): void {
    const slot = slotOf(bytes, start, end) & this.#mask;
    if (this.#slots[slot]?.pinned === true) return;
    this.#slots[slot] = { bytes: Uint8Array.from(bytes.subarray(start, end)), value, pinned: false };
  }

  /** Caches the value for good: no other text takes its slot, except by another `pin`. */
  pin(bytes: Uint8Array, value: T): void {
    const slot = slotOf(bytes, 0, bytes.length) & this.#mask;
    this.#slots[slot] = { bytes: Uint8Array.from(bytes), value, pinned: true };
  }
}

/** Hashes at most 16 bytes or so, spread over the text: a collision only costs a cache miss. */
function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const step = (length >> 4) + 1;
  let hash = length;
  for (let i = start; i < end; i += step) hash = Math.imul(hash, 31) + (bytes[i] as number);
  hash = Math.imul(hash, 31) + (length > 0 ? (bytes[end - 1] as number) : 0);
  return hash ^ (hash >>> 11);
}

function sameBytes(cached: Uint8Array, bytes: Uint8Array, start: number): boolean {
  const length = cached.length;
  let i = 0;
  for (; i + 3 < length; i += 4) {
    const at = start + i;
    const differing =
      ((cached[i] as number) ^ (bytes[at] as number)) |
      ((cached[i + 1] as number) ^ (bytes[at + 1] as number)) |
      ((cached[i + 2] as number) ^ (bytes[at + 2] as number)) |
      ((cached[i + 3] as number) ^ (bytes[at + 3] as number));
    if (differing !== 0) return false;
  }
  for (; i < length; i++) if (cached[i] !== bytes[start + i]) return false;
  return true;
}
