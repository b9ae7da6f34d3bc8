/** Yields the body of a response in chunks as they arrive. Leaving the loop closes the connection. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  // A cast: Node's response streams are iterable, but the types of `fetch` do not say so.
  if (body) yield* body as unknown as AsyncIterable<Uint8Array>;
}
