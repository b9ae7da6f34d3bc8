import { makeNode, type OnnxModel } from '../format/model.ts';

/** Matches onnxruntime-node's error for an output that is not a tensor. */
const NO_TENSOR = /non.tensor type/iu;

/**
 * Adds a first output that is not a tensor (an empty sequence), which keeps onnxruntime-node from copying all other
 * outputs. Returns its name. After every run, onnxruntime-node copies each output to a new array, even if the run wrote
 * it to an array of the caller, as it does with all of the KV. It copies in the order of the outputs and throws at one
 * that is not a tensor; by then the run is over and the arrays of the caller are filled.
 */
export function endResults(model: OnnxModel): string {
  const name = 'assay/end_of_results';
  model.graph.nodes.push(makeNode('SequenceEmpty', [], [name]));
  model.graph.outputs.unshift({ name, dataType: 0, dims: [] });
  return name;
}

/** Tells whether an error only comes from the output of `endResults`, so the run itself succeeded. */
export function isEndOfResults(error: unknown): boolean {
  return error instanceof Error && NO_TENSOR.test(error.message);
}
