/** An auth-param of a `WWW-Authenticate` header: the position and the text of its value. */
interface AuthParam {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/** A name, an equals sign, and white space (RFC 9110, section 11.2). */
const NAMED = /([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*/y;
const BARE = /[^\s,"]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;

/** Yields the values of a parameter in all challenges of a header. Quoted text of other parameters is skipped. */
function* parametersOf(header: string, name: string): Generator<AuthParam> {
  for (let at = 0; at < header.length; ) {
    NAMED.lastIndex = at;
    const named = NAMED.exec(header);
    const start = named === null ? at : NAMED.lastIndex;
    const form = header[start] === '"' ? QUOTED : BARE;
    form.lastIndex = start;
    const found = form.exec(header);
    // An unclosed quote: no client could parse the rest.
    if (found === null) return;
    const end = form.lastIndex;
    if (named?.[1]?.toLowerCase() === name) {
      yield { start, end, value: found[1]?.replace(/\\(.)/g, '$1') ?? found[0] };
    }
    at = end > at ? end : at + 1;
  }
}

/**
 * Changes `resource_metadata` in the challenges of a `WWW-Authenticate` header (RFC 9728, section 5.1).
 * @param change maps a URL to the new one; undefined keeps it
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
