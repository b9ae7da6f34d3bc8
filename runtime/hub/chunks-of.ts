/** Yields the body of a response as it arrives. Leaving the loop closes the connection. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  // Streams of Node can be iterated; the types of `fetch` do not say so.
  if (body) yield* body as unknown as AsyncIterable<Uint8Array>;
}
