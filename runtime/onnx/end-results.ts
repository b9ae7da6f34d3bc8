import { type Model, makeNode } from './model.ts';

/** What onnxruntime-node throws after a run whose next result is no tensor. */
const NO_TENSOR = /non.tensor type/iu;

/**
 * Puts an output first that is no tensor (an empty sequence). onnxruntime-node copies every result of a run into a new
 * array, also those that the run wrote into arrays of the caller: all KV, for each token. It copies them in the order
 * of the outputs and gives up at one that is no tensor; by then the run is over and the caller's arrays hold what is
 * wanted. Returns the output's name.
 */
export function endResults(model: Model): string {
  const name = 'assay/end_of_results';
  model.graph.nodes.push(makeNode('SequenceEmpty', [], [name]));
  model.graph.outputs.unshift({ name, dataType: 0, dims: [] });
  return name;
}

/** Whether a run ended as `endResults` made it end. */
export function isEndOfResults(error: unknown): boolean {
  return error instanceof Error && NO_TENSOR.test(error.message);
}
