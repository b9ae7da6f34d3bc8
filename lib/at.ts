/**
 * Returns the item at an index that the caller knows to exist. Loops over a vocabulary or over weights read with `?? 0`
 * instead, which the compiler removes: this function sees every kind of list, so its reads are slower.
 *
 * @throws RangeError if there is none: a fault in the calling code
 */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`);
  return item;
}
