/** Adds items at the end of a list. `push(...items)` puts all of them on the stack, which ends at about 120,000. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
