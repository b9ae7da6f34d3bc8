/** Ends a source of events that is not read any further, and thus frees what it holds. */
export function endEarly(source: AsyncIterator<unknown>): void {
  // If the cleanup of a generator throws, `return` rejects. Nobody waits for that, and an unhandled rejection would end
  // the process.
  source.return?.().catch(() => {});
}
