/** The media types of a response that a client accepts. */
export interface Accepted {
  readonly json: boolean;
  readonly events: boolean;
  /** The client names event streams before JSON, so it gets a stream where both would do. */
  readonly eventsFirst: boolean;
}

const BOTH: Accepted = { json: true, events: true, eventsFirst: false };
/** What SDK clients send; it is not parsed each time. */
const USUAL = 'application/json, text/event-stream';

/** Media ranges that match a type, the most specific first: the first that is present decides (RFC 9110, section 12.5.1). */
const JSON_RANGES = ['application/json', 'application/*', '*/*'] as const;
const EVENT_RANGES = ['text/event-stream', 'text/*', '*/*'] as const;

const EITHER: ReadonlySet<string> = new Set([JSON_RANGES[0], EVENT_RANGES[0]]);

/**
 * Reads `Accept`. The specification requires both types in it, but clients in use name one of them, a wildcard, or
 * nothing. No header accepts both; one that names neither gets JSON rather than a refusal.
 * @param header several headers of this name are joined with commas
 */
export function readAccept(header: string | undefined): Accepted {
  if (header === undefined || header === USUAL) return BOTH;
  const ranges = new Map<string, boolean>();
  for (const part of header.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    ranges.set(range, !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter)));
  }
  const takes = (matching: readonly string[]): boolean => {
    const first = matching.find((range) => ranges.has(range));
    return first !== undefined && ranges.get(first) === true;
  };
  const events = takes(EVENT_RANGES);
  const [first] = [...ranges.keys()].filter((range) => EITHER.has(range));
  return { json: takes(JSON_RANGES) || !events, events, eventsFirst: events && first === EVENT_RANGES[0] };
}
