import { type Model, makeNode } from './model.ts';

/** Matches the error of onnxruntime-node when the next result of a run is not a tensor. */
const NO_TENSOR = /non.tensor type/iu;

/**
 * Adds a first output that is not a tensor (an empty sequence). onnxruntime-node copies every result of a run into a
 * new array, even when the run wrote it into an array of the caller: all of the KV, for each token. It copies in the
 * order of the outputs and stops at one that is not a tensor; by then the run is over and the caller's arrays are
 * filled. Returns the name of the output.
 */
export function endResults(model: Model): string {
  const name = 'assay/end_of_results';
  model.graph.nodes.push(makeNode('SequenceEmpty', [], [name]));
  model.graph.outputs.unshift({ name, dataType: 0, dims: [] });
  return name;
}

/** Tells whether a run ended as intended by `endResults`. */
export function isEndOfResults(error: unknown): boolean {
  return error instanceof Error && NO_TENSOR.test(error.message);
}
