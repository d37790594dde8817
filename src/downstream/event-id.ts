/** Whose stream it is: that of one request, or the session's standalone GET stream. */
export type StreamKind = 'request' | 'session';

/** The first letter of a stream's key. */
const KIND_LETTER = { request: 'r', session: 's' } as const satisfies Record<StreamKind, string>;

/** The parts of an event id: the stream, and the number of the event in it. */
export interface EventId {
  readonly key: string;
  readonly seq: number;
  readonly kind: StreamKind;
}

/** @param unique lower-case letters and digits */
export function streamKey(kind: StreamKind, unique: string): string {
  return `${KIND_LETTER[kind]}${unique}`;
}

export function writeEventId(key: string, seq: number): string {
  return `${key}-${seq.toString(36)}`;
}

/** @returns undefined for an id that no gateway can have given */
export function readEventId(id: string): EventId | undefined {
  const [, key, letter, seq] = /^(([rs])[0-9a-z]{8,20})-([0-9a-z]{1,9})$/.exec(id) ?? [];
  if (key === undefined || seq === undefined) return undefined;
  return { key, seq: Number.parseInt(seq, 36), kind: letter === KIND_LETTER.session ? 'session' : 'request' };
}
