import { at } from '../../lib/at.ts';
import type { Model } from '../onnx/format/model.ts';
import { attentionNodes, type Layout } from '../onnx/layout.ts';
import { gatherRows } from '../onnx/rewrites/gather-rows.ts';
import type { StaticShape } from '../onnx/rewrites/static/plain-attention.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import type { FixedPrecision } from './precision.ts';
import type { Rewritten } from './rewritten-graphs.ts';
import { staticGraphs } from './static-graphs.ts';
import { floatProducts, formOf, NO_BLOCKS } from './weight-conversion.ts';
import { blockWeights } from './weights/blocks.ts';
import { int8Embedding } from './weights/int8.ts';

/**
 * Number of inputs that share a scale in weights for NPUs: the block size that the compilers of both Intel and Qualcomm
 * accept (measured, docs/devices.md).
 */
const DEVICE_BLOCK = 32;

/**
 * Rewrites a model to static graphs of the given shapes, with packed branches. Throws `engine_failed` if it cannot be
 * split.
 */
export function rewriteStatic(
  model: Model,
  layout: Layout,
  precision: FixedPrecision,
  shapes: readonly StaticShape[],
): Rewritten {
  if (layout.media) throw unusable('static graphs support neither images nor audio');
  if (layout.states.length > 0) throw unusable('static graphs do not support layers that keep a state');
  if (model.graph.nodes.some(({ op }) => op === 'RotaryEmbedding')) {
    throw unusable('its rotary embeddings are outside of the attention nodes (Gemma 4), which has no static form');
  }
  if (isHalf(model)) toFloat32(model);
  const attention = attentionNodes(model.graph, layout);
  if (attention && attention.length > layout.kv.length)
    throw unusable('its layers share keys and values, which has no static form');
  if (model.graph.nodes.some((node) => node.inputs.includes('position_ids') && !attention?.includes(node)))
    throw unusable('its layers read positions outside of the attention nodes (Ministral 3), which has no static form');
  const rows = attention && gatherRows(model, layout, attention);
  if (!rows) throw unusable('its attention or its head is not in a form that static graphs are made from');
  if (precision === 'published') throw unusable('the blocks of a GGUF file have no static form', NO_BLOCKS);
  if (precision !== 'float' && precision !== 'keep') {
    int8Embedding(model, layout.tokens);
    blockWeights(model, { bits: precision === 'int4' ? 4 : 8, size: DEVICE_BLOCK });
  }
  if (precision === 'float') floatProducts(model);
  const made = formOf(model);
  // Blocks of a GGUF file are read as floats.
  const form = precision === 'float' || made === 'published' ? 'float' : made;
  const { graphs, masks, manifest } = staticGraphs(model, layout, rows, shapes);
  const { tokens, logits, vocabSize, kv } = layout;
  const inputs = { tokens, masks, positions: 'position_ids' };
  return {
    form,
    graphs,
    facts: { path: 'static', graph: at(graphs, 0).file, vocabSize, logits, kv, inputs, static: manifest },
  };
}
