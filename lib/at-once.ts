/** Runs all parts of a generator at once and returns its result. */
export function atOnce<T>(parts: Generator<void, T>): T {
  for (;;) {
    const part = parts.next();
    if (part.done) return part.value;
  }
}
