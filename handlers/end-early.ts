/**
 * Ends a source of events that is not read any further, so that it frees its resources. Does not wait for it, and
 * ignores an error that it throws.
 */
export function endEarly(source: AsyncIterator<unknown>): void {
  // If the cleanup of a generator throws, `return` rejects. Nobody waits for that, and an unhandled rejection would end
  // the process.
  source.return?.().catch(() => {});
}
