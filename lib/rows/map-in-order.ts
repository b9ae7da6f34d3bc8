/** Bounds what `mapInOrder` does at once. */
export interface Bounds {
  /** Maximum number of items that are worked on at once. */
  inflight: number;
  /** Maximum number of items that are worked on, or whose results wait for that of an earlier item. */
  window: number;
}

/**
 * Works on items, several at once, and yields the results in the order of the items. Reads an item only when it can be
 * begun. If reading or the work on an item fails, throws that error when the turn of the item comes; a caller that ends
 * early leaves the items that have begun to themselves.
 */
export async function* mapInOrder<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  { inflight, window }: Bounds,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const begun: Promise<R>[] = [];
  const running = new Set<Promise<unknown>>();
  let more = true;
  let failed = false;
  const next = async (): Promise<void> => {
    const { value, done } = await source.next();
    if (done) {
      more = false;
      return;
    }
    const result = work(value);
    // It is thrown in its turn; until then it must not count as unhandled.
    const settled = result.then(
      () => void running.delete(settled),
      () => {
        failed = true;
        running.delete(settled);
      },
    );
    running.add(settled);
    begun.push(result);
  };
  try {
    while (more || begun.length > 0) {
      while (more && !failed && begun.length < window && running.size < inflight) await next();
      const [first] = begun;
      if (!first) continue;
      const waiting = more && !failed && begun.length < window;
      const isFirst = await Promise.race([first.then(() => true), ...(waiting ? running : [])]);
      if (isFirst !== true) continue;
      begun.shift();
      yield await first;
    }
  } finally {
    await source.return?.();
  }
}
