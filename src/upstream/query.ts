/**
 * Name of the pseudo-header that holds the query of a caller among the headers of a request, without `?`. HTTP has no such
 * header: it becomes part of the path when the request is written.
 */
export const QUERY = ':query';

/** A request without the pseudo-header, and the value of that. */
export interface WithoutQuery {
  readonly headers: readonly string[];
  readonly query: string | undefined;
}

export function withoutQuery(headers: readonly string[]): WithoutQuery {
  const at = headers.indexOf(QUERY);
  if (at === -1) return { headers, query: undefined };
  return { headers: headers.toSpliced(at, 2), query: headers[at + 1] };
}

/**
 * A path with the parameters of a caller after those that it has. A parameter that the path has is not added.
 * @param path path and query
 */
export function joinQuery(path: string, query: string | undefined): string {
  if (query === undefined) return path;
  const start = path.indexOf('?');
  if (start === -1) return `${path}?${query}`;
  const names = new Set(new URLSearchParams(path.slice(start + 1)).keys());
  const added = query.split('&').filter((parameter) => !names.has(nameOf(parameter)));
  if (added.length === 0) return path;
  return `${path}${path.endsWith('?') || path.endsWith('&') ? '' : '&'}${added.join('&')}`;
}

/** A path without the parameters of a caller: a server that redirects repeats them in the location. */
export function splitQuery(path: string, query: string | undefined): string {
  const start = path.indexOf('?');
  if (query === undefined || start === -1) return path;
  const callers = new Set(query.split('&').map(decoded));
  const rest = path
    .slice(start + 1)
    .split('&')
    .filter((parameter) => !callers.has(decoded(parameter)));
  return rest.length === 0 ? path.slice(0, start) : `${path.slice(0, start)}?${rest.join('&')}`;
}

function nameOf(parameter: string): string {
  const [name] = new URLSearchParams(parameter).keys();
  return name ?? '';
}

/** Servers may encode a parameter in another way than the caller. */
function decoded(parameter: string): string {
  return new URLSearchParams(parameter).toString();
}
