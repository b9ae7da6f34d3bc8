/**
 * Returns the item at an index that the caller knows to be in range. Loops over a whole vocabulary or over weights use
 * `list[i] ?? 0` instead, which is faster: V8 cannot specialize this function, because it is called with many kinds of
 * arrays.
 *
 * @throws RangeError if the index is out of range, which is a bug in the calling code
 */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`);
  return item;
}
