/**
 * Returns the item at an index that the caller knows to be in range. Hot loops over a vocabulary or over weights use
 * `list[i] ?? 0` instead, which the compiler removes; this function is slower because it is called with every kind of
 * list.
 *
 * @throws RangeError if the index is out of range, which is a fault in the calling code
 */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`);
  return item;
}
