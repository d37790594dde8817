interface Entry<T> {
  readonly bytes: Uint8Array;
  readonly value: T;
  readonly pinned: boolean;
}

/**
 * Remembers what texts mean by their bytes. To make a string of them first, only to look it up, costs more than the
 * comparison. Each text has one slot, and the later one of two that share it takes it, unless the earlier is pinned.
 */
export class ByteTable<T> {
  readonly #slots: (Entry<T> | undefined)[];
  readonly #mask: number;

  /** @param size number of slots, a power of two */
  constructor(size: number) {
    this.#slots = new Array(size).fill(undefined);
    this.#mask = size - 1;
  }

  /** What bytes `[start, end)` mean, if that is remembered. */
  get(bytes: Uint8Array, start: number, end: number): T | undefined {
    const entry = this.#slots[slotOf(bytes, start, end) & this.#mask];
    if (entry === undefined || entry.bytes.length !== end - start) return undefined;
    return sameBytes(entry.bytes, bytes, start) ? entry.value : undefined;
  }

  /** Remembers, in a copy of the bytes, what they mean. */
  set(bytes: Uint8Array, start: number, end: number, value: T, pinned = false): void {
    const slot = slotOf(bytes, start, end) & this.#mask;
    if (this.#slots[slot]?.pinned === true && !pinned) return;
    this.#slots[slot] = { bytes: Uint8Array.from(bytes.subarray(start, end)), value, pinned };
  }
}

/** Looks at a few bytes only, spread over all of them: a wrong guess costs no more than finding out once more. */
function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const step = (length >> 4) + 1;
  let hash = length;
  for (let i = start; i < end; i += step) hash = Math.imul(hash, 31) + (bytes[i] as number);
  hash = Math.imul(hash, 31) + (length > 0 ? (bytes[end - 1] as number) : 0);
  return hash ^ (hash >>> 11);
}

function sameBytes(known: Uint8Array, bytes: Uint8Array, start: number): boolean {
  const length = known.length;
  let i = 0;
  for (; i + 3 < length; i += 4) {
    const at = start + i;
    const differing =
      ((known[i] as number) ^ (bytes[at] as number)) |
      ((known[i + 1] as number) ^ (bytes[at + 1] as number)) |
      ((known[i + 2] as number) ^ (bytes[at + 2] as number)) |
      ((known[i + 3] as number) ^ (bytes[at + 3] as number));
    if (differing !== 0) return false;
  }
  for (; i < length; i++) if (known[i] !== bytes[start + i]) return false;
  return true;
}
