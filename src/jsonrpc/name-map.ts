/**
 * Values by names that a peer chooses, such as methods and types of content. A plain object would also answer to the
 * members of `Object.prototype` (`constructor`, `toString`, `__proto__`), so the lint rule in `.biome/` refuses such tables.
 */
export function nameMap<V>(entries: Readonly<Record<string, V>>): ReadonlyMap<string, V> {
  return new Map(Object.entries(entries));
}
