import type { WeightForm } from '../../lib/schema/form-choice.ts';
import { attribute, attributeFields, DataType, type Model } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import type { FixedPrecision } from './form-choice.ts';
import { int4Weights, int8BlockWeights } from './weights/blocks.ts';
import { blockExperts } from './weights/experts.ts';
import { int8Embedding, int8Weights } from './weights/int8.ts';
import { hasPublishedBlocks, publishedWeights } from './weights/published.ts';

/**
 * Converts the weights of a graph in place to a precision. Returns the resulting weight form. Throws `engine_failed`
 * for `published` if the weights are not those of a GGUF file in blocks.
 *
 * @param tokens input of the token ids, by which the embedding table is found
 */
export function convertWeights(model: Model, tokens: string, precision: FixedPrecision): WeightForm {
  const form = precision === 'keep' ? formOf(model) : precision;
  if (form === 'published') {
    if (!hasPublishedBlocks(model.graph)) throw unusable('its weights are not in the blocks of a GGUF file', NO_BLOCKS);
    publishedWeights(model, tokens);
    return form;
  }
  if (precision !== 'float' && precision !== 'keep') int8Embedding(model, tokens);
  if (precision === 'int8' || precision === 'int8-blocks') blockExperts(model, 8);
  if (precision === 'int4') blockExperts(model, 4);
  if (precision === 'int8') int8Weights(model);
  if (precision === 'int8-blocks') int8BlockWeights(model);
  if (precision === 'int4') int4Weights(model);
  if (precision === 'float') floatProducts(model);
  return form;
}

/** Says what to do instead of `--precision published`. */
export const NO_BLOCKS = 'Leave out --precision published.';

/** Makes MatMulNBits nodes compute in 32-bit floats, whatever precision their publisher allows. */
export function floatProducts({ graph }: Model): void {
  for (const node of graph.nodes) {
    if (node.op === 'MatMulNBits') node.attributes.set('accuracy_level', attributeFields('accuracy_level', 1));
  }
}

/**
 * Returns the form of a graph's weights. With MatMulNBits nodes, it is `int8-blocks` if all have 8 bits, otherwise
 * `int4`; without them, `published` if a matrix has the blocks of a GGUF file, `int8` if a weight is of that type,
 * otherwise `float`.
 */
export function formOf({ graph }: Model): WeightForm {
  const blocks = graph.nodes.filter((node) => node.op === 'MatMulNBits');
  if (blocks.length > 0) return blocks.every((node) => attribute(node, 'bits') === 8) ? 'int8-blocks' : 'int4';
  if (hasPublishedBlocks(graph)) return 'published';
  return [...graph.initializers.values()].some((tensor) => tensor.dataType === DataType.int8) ? 'int8' : 'float';
}
