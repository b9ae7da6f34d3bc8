import type { InferenceSession, InferenceSessionHandler, OnnxValue } from 'onnxruntime-node';

/**
 * Runs a session without the checks of the JavaScript class around it (onnxruntime-common,
 * lib/inference-session-impl.ts). The class demands every input, also those that only a skipped branch of the graph
 * reads, and searches all fetches for each of the session's outputs: 0.2 ms a run with eight slots in 24 layers.
 * onnxruntime itself checks what it is given.
 *
 * @param fetches outputs to compute, each with the tensor to write it to; null lets onnxruntime allocate one
 */
export function runDirectly(
  session: InferenceSession,
  feeds: Readonly<Record<string, OnnxValue>>,
  fetches: Readonly<Record<string, OnnxValue | null>>,
): Promise<unknown> {
  // A cast: the class has this member, but does not declare it.
  const { handler } = session as InferenceSession & { handler: InferenceSessionHandler };
  return handler.run(feeds, fetches, {});
}
