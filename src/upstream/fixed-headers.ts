/** Headers that a caller may bring itself, in place of those of the route. */
const OF_CALLERS = ['authorization', 'traceparent', 'tracestate'] as const;

/**
 * The headers of a request with those that the route adds to each. What the caller has brought along stands for itself:
 * of two credentials a server would take the one or the other, or refuse both.
 *
 * @param headers name and value in turn
 * @param fixed likewise, names in lower case
 */
export function withFixed(headers: readonly string[], fixed: readonly string[]): readonly string[] {
  if (fixed.length === 0) return headers;
  const brought = OF_CALLERS.filter((name) => fixed.includes(name) && headers.includes(name));
  if (brought.length === 0) return headers.concat(fixed);
  const all = [...headers];
  for (let i = 0; i + 1 < fixed.length; i += 2) {
    const name = fixed[i] as string;
    if (!brought.some((other) => other === name)) all.push(name, fixed[i + 1] as string);
  }
  return all;
}
