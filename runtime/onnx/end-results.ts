import { type Model, makeNode } from './model.ts';

/** Matches onnxruntime-node's error for an output that is not a tensor. */
const NO_TENSOR = /non.tensor type/iu;

/**
 * Adds an output that comes first and is not a tensor (an empty sequence), and returns its name. After a run,
 * onnxruntime-node copies every output to a new array, even if the run wrote it to an array of the caller: all of the
 * KV, for each token. It copies in the order of the outputs, and throws at one that is not a tensor; by then the run is
 * over and the caller's arrays are filled.
 */
export function endResults(model: Model): string {
  const name = 'assay/end_of_results';
  model.graph.nodes.push(makeNode('SequenceEmpty', [], [name]));
  model.graph.outputs.unshift({ name, dataType: 0, dims: [] });
  return name;
}

/**
 * Tells whether a run's error is the intended one that the output of `endResults` causes, so that the run succeeded.
 */
export function isEndOfResults(error: unknown): boolean {
  return error instanceof Error && NO_TENSOR.test(error.message);
}
