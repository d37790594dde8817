import { FORWARDED_HEADERS, type ForwardedHeaders } from '../exchange/forwarded-headers.js';

/**
 * Adds the headers that are forwarded from the caller to those of a request.
 * @param headers name and value in turn
 */
export function addForwarded(headers: string[], forwarded: ForwardedHeaders): void {
  for (const name of FORWARDED_HEADERS) {
    const value = forwarded[name];
    if (value !== undefined) headers.push(name, value);
  }
}

/**
 * Adds the fixed headers of a route to those of a request. A header of the caller replaces the fixed one: given two
 * credentials, a server picks either or refuses both.
 * @param headers name and value in turn
 * @param fixed likewise, names in lower case
 */
export function withFixed(headers: readonly string[], fixed: readonly string[]): readonly string[] {
  if (fixed.length === 0) return headers;
  const replaced = FORWARDED_HEADERS.filter((name) => fixed.includes(name) && headers.includes(name));
  if (replaced.length === 0) return headers.concat(fixed);
  const all = [...headers];
  for (let i = 0; i + 1 < fixed.length; i += 2) {
    const name = fixed[i] as string;
    if (!replaced.some((other) => other === name)) all.push(name, fixed[i + 1] as string);
  }
  return all;
}
