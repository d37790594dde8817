/** Where one auth-param of a `WWW-Authenticate` header stands, and what it says. */
interface Parameter {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/** A name, an equals sign, and what comes up to the value (RFC 9110, section 11.2). */
const NAMED = /([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*/y;
const BARE = /[^\s,"]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;

/** The values of a parameter, in all challenges of a header; not those that only stand in the text of another one. */
function* parametersOf(header: string, name: string): Generator<Parameter> {
  for (let at = 0; at < header.length; ) {
    NAMED.lastIndex = at;
    const named = NAMED.exec(header);
    const start = named === null ? at : NAMED.lastIndex;
    const form = header[start] === '"' ? QUOTED : BARE;
    form.lastIndex = start;
    const found = form.exec(header);
    // A quote that is not closed: the rest is nothing that a client could read.
    if (found === null) return;
    const end = form.lastIndex;
    if (named?.[1]?.toLowerCase() === name) {
      yield { start, end, value: found[1]?.replace(/\\(.)/g, '$1') ?? found[0] };
    }
    at = end > at ? end : at + 1;
  }
}

/**
 * A `WWW-Authenticate` header with the `resource_metadata` of its challenges (RFC 9728, section 5.1) changed.
 * @param change gives the new URL for an old one, or undefined to leave it
 */
export function changeResourceMetadata(header: string, change: (url: string) => string | undefined): string {
  let changed = '';
  let from = 0;
  for (const { start, end, value } of parametersOf(header, 'resource_metadata')) {
    const url = change(value);
    if (url === undefined) continue;
    changed += `${header.slice(from, start)}"${url}"`;
    from = end;
  }
  return changed + header.slice(from);
}

/** The first `resource_metadata` of a header. */
export function resourceMetadataOf(header: string): string | undefined {
  for (const { value } of parametersOf(header, 'resource_metadata')) return value;
  return undefined;
}
