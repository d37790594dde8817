import { type ForwardedHeaders, REPLACING_HEADERS } from '../exchange/forwarded-headers.js';
import { QUERY } from './query.js';

/**
 * Adds the headers that are forwarded from the caller to those of a request, and its query.
 * @param headers name and value in turn
 */
export function addForwarded(headers: string[], { authorization, lines, query }: ForwardedHeaders): void {
  if (authorization !== undefined) headers.push('authorization', authorization);
  if (lines !== undefined) for (const part of lines) headers.push(part);
  if (query !== undefined) headers.push(QUERY, query);
}

/**
 * Adds the fixed headers of a route to those of a request. Credentials and trace headers of the caller replace the fixed
 * ones: given two credentials, a server picks either or refuses both.
 * @param headers name and value in turn
 * @param fixed likewise, names in lower case
 */
export function withFixed(headers: readonly string[], fixed: readonly string[]): readonly string[] {
  if (fixed.length === 0) return headers;
  const replaced = REPLACING_HEADERS.filter((name) => fixed.includes(name) && headers.includes(name));
  if (replaced.length === 0) return headers.concat(fixed);
  const all = [...headers];
  for (let i = 0; i + 1 < fixed.length; i += 2) {
    const name = fixed[i] as string;
    if (!replaced.some((other) => other === name)) all.push(name, fixed[i + 1] as string);
  }
  return all;
}
