/** Durations and sizes in the gateway file. */

const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
};

/** The longest delay of a Node timer; a longer one would fire at once. */
export const MAX_DURATION_MS = 2 ** 31 - 1;

/** The largest Buffer on every supported version of Node. */
export const MAX_SIZE_BYTES = 2 ** 32 - 1;

/** Milliseconds of `500ms`, `60s`, `10m` or `1h30m`; undefined for any other text, and outside of 1 … {@link MAX_DURATION_MS}. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$/.test(text)) return undefined;
  let sum = 0;
  for (const [, digits, unit = ''] of text.matchAll(/(\d+)(ms|s|m|h)/g))
    sum += Number(digits) * (MILLISECONDS[unit] as number);
  return inRange(String(sum), 1, MAX_DURATION_MS);
}

/** Bytes of `64KiB`, `4MiB`, `4MB`, `1GiB`, `100B` or `100`; undefined for any other value, and outside of 1 … {@link MAX_SIZE_BYTES}. */
export function parseSize(value: string | number): number | undefined {
  const [, digits, unit] = /^(\d+)(B|KiB|MiB|GiB|[kK]B|MB|GB)?$/.exec(String(value)) ?? [];
  return inRange(digits, BYTES[unit ?? 'B'], MAX_SIZE_BYTES);
}

/** A duration in the largest unit without a fraction: 300000 is `5m`. */
export function formatDuration(ms: number): string {
  const [unit, factor] = Object.entries(MILLISECONDS).findLast(([, f]) => ms % f === 0) ?? ['ms', 1];
  return `${ms / factor}${unit}`;
}

function inRange(digits: string | undefined, factor: number | undefined, max: number): number | undefined {
  if (digits === undefined || factor === undefined) return undefined;
  const value = Number(digits) * factor;
  return value >= 1 && value <= max ? value : undefined;
}
