import { at } from '../../lib/at.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import {
  attribute,
  attributeFields,
  DataType,
  elementCount,
  type Graph,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
} from '../onnx/format/model.ts';
import { floatMatrix } from '../onnx/format/tensor-data.ts';
import { unusable } from '../onnx/unusable.ts';
import type { FixedPrecision } from './choose-precision.ts';
import { addBlocks, type BlockFormat, int4Weights, int8BlockWeights } from './weights/blocks.ts';
import { int8Embedding, int8Weights } from './weights/int8.ts';
import { hasPublishedBlocks, publishedWeights } from './weights/published.ts';
import { stackProducts } from './weights/stack.ts';

/**
 * Converts the weights of a graph in place to the requested precision. Returns the resulting one. Throws
 * `engine_failed` for `published` if the weights are not those of a GGUF file in blocks.
 *
 * @param tokens input of the token ids, by which the embedding table is found
 */
export function convertWeights(model: OnnxModel, tokens: string, requested: FixedPrecision): Precision {
  const precision = requested === 'keep' ? precisionOf(model) : requested;
  if (precision === 'published') {
    if (!hasPublishedBlocks(model.graph)) throw unusable('its weights are not in the blocks of a GGUF file', NO_BLOCKS);
    stackProducts(model.graph);
    publishedWeights(model, tokens);
    return precision;
  }
  if (requested !== 'float' && requested !== 'keep') int8Embedding(model, tokens);
  if (requested === 'int8' || requested === 'int8-blocks') blockExperts(model, 8);
  if (requested === 'int4') blockExperts(model, 4);
  if (requested === 'int8') int8Weights(model);
  if (requested === 'int8-blocks') int8BlockWeights(model);
  if (requested === 'int4') int4Weights(model);
  if (requested === 'float') floatProducts(model);
  return precision;
}

/** Says what to do instead of `--precision published`. */
export const NO_BLOCKS = 'Leave out --precision published.';

/** Makes MatMulNBits nodes compute in 32-bit floats, whatever precision their publisher allows. */
export function floatProducts({ graph }: OnnxModel): void {
  for (const node of graph.nodes) {
    if (node.op === 'MatMulNBits') node.attributes.set('accuracy_level', attributeFields('accuracy_level', 1));
  }
}

/**
 * Returns the precision of a graph's weights. With MatMulNBits nodes, it is `int8-blocks` if all have 8 bits, otherwise
 * `int4`; without them, `published` if a matrix has the blocks of a GGUF file, `int8` if a weight is of that type,
 * otherwise `float`.
 */
export function precisionOf({ graph }: OnnxModel): Precision {
  const blocks = graph.nodes.filter((node) => node.op === 'MatMulNBits');
  if (blocks.length > 0) return blocks.every((node) => attribute(node, 'bits') === 8) ? 'int8-blocks' : 'int4';
  if (hasPublishedBlocks(graph)) return 'published';
  return [...graph.initializers.values()].some((tensor) => tensor.dataType === DataType.int8) ? 'int8' : 'float';
}

/** Number of inputs of an expert that share a scale, the first that divides all inputs. */
const BLOCKS = [64, 32, 16];

/**
 * Replaces the matrices of experts in floats (MoE) with blocks of 4 or 8 bits (QMoE), of which each has a scale and its
 * zero in the middle. Leaves experts unchanged whose inputs no block divides. Source: onnxruntime,
 * docs/ContribOperators.md, com.microsoft.QMoE.
 */
export function blockExperts({ graph }: OnnxModel, bits: 4 | 8): void {
  for (const node of graph.nodes.filter(({ op, domain }) => op === 'MoE' && domain === 'com.microsoft')) {
    const [x = '', scores = '', gateUp = '', gateUpBias = '', down = '', downBias = ''] = node.inputs;
    const matrices = [gateUp, down].map((name) => graph.initializers.get(name));
    const size = BLOCKS.find((block) => matrices.every((tensor) => (tensor?.dims[2] ?? 0) % block === 0));
    const [first, second] = matrices;
    if (!size || !first || !second || node.inputs.slice(6).some(Boolean)) continue;
    const blocks = (tensor: Tensor, bias: string) => [...expertBlocks(graph, node, tensor, { bits, size }), bias];
    node.op = 'QMoE';
    node.inputs = [x, scores, ...blocks(first, gateUpBias), ...blocks(second, downBias)];
    setInteger(node, 'expert_weight_bits', bits);
    setInteger(node, 'block_size', size);
  }
}

function setInteger(node: OnnxNode, name: string, value: number): void {
  node.attributes.set(name, attributeFields(name, value));
}

/** Adds the levels and the scales of a tensor `[experts, outputs, inputs]`; returns their names. */
function expertBlocks(graph: Graph, node: OnnxNode, tensor: Tensor, format: BlockFormat): string[] {
  const [experts, outputs, inputs] = [at(tensor.dims, 0), at(tensor.dims, 1), at(tensor.dims, 2)];
  const rows = experts * outputs;
  const matrix = floatMatrix({ ...tensor, dims: [rows, inputs] });
  if (!matrix) throw new Error('experts are floats');
  const names = addBlocks(graph, { node, weight: tensor.name, inputs, outputs: rows, matrix, byOutput: true }, format);
  for (const name of names) {
    const added = graph.initializers.get(name);
    if (added) graph.initializers.set(name, { ...added, dims: [experts, outputs, elementCount(added) / rows] });
  }
  return names;
}
