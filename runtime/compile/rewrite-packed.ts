import { dataLength, type Model } from '../onnx/format/model.ts';
import { attentionNodes, couplesRows, type Layout } from '../onnx/layout.ts';
import { addAttentionSlots } from '../onnx/rewrites/attention-slots.ts';
import { endResults } from '../onnx/rewrites/end-results.ts';
import { gatherColumns } from '../onnx/rewrites/gather-columns.ts';
import { gatherRows } from '../onnx/rewrites/gather-rows.ts';
import { keepWholePast, packBranches } from '../onnx/rewrites/pack-branches.ts';
import { packStates } from '../onnx/rewrites/pack-states.ts';
import { padRotaryTables } from '../onnx/rewrites/pad-rotary.ts';
import { prune } from '../onnx/rewrites/prune.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import type { Manifest } from './manifest.ts';
import type { FixedPrecision } from './precision.ts';
import type { Rewritten } from './rewritten-graphs.ts';
import { convertWeights } from './weight-conversion.ts';

const GRAPH_FILE = 'model.onnx';
const BATCH_FILE = 'batch.onnx';
/**
 * Maximum bytes of weights of a model that counts as small. A small model is opened a second time, with a graph for
 * runs of a single sequence.
 */
const SMALL_WEIGHTS = 64 << 20;

/** File name of the media encoder: the graph that computes features of images or audio. */
export const ENCODER_FILE = 'encoder.onnx';

/**
 * Rewrites a graph in place so that it accepts packed branches and any number of tokens, for devices that accept
 * dynamic shapes. Without fused attention, the graph computes one branch at a time instead (`plain`). Returns that
 * graph, or a copy with attention slots if `slots` is above 1 and the graph can have them; for a small model, both.
 * Throws `engine_failed` for a model that cannot be rewritten.
 */
export function rewritePacked(model: Model, layout: Layout, precision: FixedPrecision, slots: number): Rewritten {
  if (isHalf(model)) toFloat32(model);
  keepWholePast(model);
  const attention = couplesRows(model.graph) ? undefined : attentionNodes(model.graph, layout);
  if (layout.states.length > 0 && !attention) {
    throw unusable('it mixes layers that keep a state with attention that is not fused');
  }
  const lanes = packStates(model, layout);
  const masks = attention ? packBranches(model, layout, attention) : [];
  if (attention) padRotaryTables(model, attention);
  const rows = gatherRows(model, layout, attention);
  const end = attention ? endResults(model) : undefined;
  const form = convertWeights(model, layout.tokens, precision);
  gatherColumns(model.graph);
  prune(model.graph);
  const { logits, vocabSize, kv, media } = layout;
  const facts = {
    path: attention ? ('packed' as const) : ('plain' as const),
    vocabSize,
    logits,
    ...(end ? { end } : {}),
    kv,
    ...(media ? { media: { ...media, encoder: ENCODER_FILE } } : {}),
    ...(lanes ? { states: layout.states } : {}),
  };
  const inputsOf = ({ tokens, attentionMask, positions, positionRows }: Layout): Manifest['inputs'] => ({
    tokens,
    masks,
    ...(lanes ? { lanes } : {}),
    ...(attentionMask ? { attentionMask } : {}),
    ...(positions ? { positions, ...(positionRows ? { positionRows } : {}) } : {}),
    ...(rows ? { rows } : {}),
  });
  const alone = { file: GRAPH_FILE, model };
  const aloneFacts = { graph: GRAPH_FILE, inputs: inputsOf(layout) };
  const batch = { file: BATCH_FILE, model: { ...model, graph: copyOf(model.graph) } };
  const batchLayout = { ...layout };
  // Models with recurrent layers run one sequence at a time.
  const single = !attention || lanes || slots === 1;
  if (single || !addAttentionSlots(batch.model, batchLayout, attention, masks, slots)) {
    return { form, graphs: [alone], facts: { ...facts, ...aloneFacts } };
  }
  // Slots read their lengths from inputs of their own, so the nodes that computed them from the attention mask are
  // unused.
  prune(batch.model.graph);
  const batchFacts = { graph: BATCH_FILE, inputs: inputsOf(batchLayout), slots };
  return weightBytes(model.graph) <= SMALL_WEIGHTS
    ? { form, graphs: [batch, alone], facts: { ...facts, ...batchFacts, alone: aloneFacts } }
    : { form, graphs: [batch], facts: { ...facts, ...batchFacts } };
}

/**
 * Copies the lists of a graph, so that its nodes, inputs and outputs can be replaced without changing the original. The
 * nodes themselves are shared.
 */
function copyOf({ nodes, initializers, inputs, outputs, rest }: Model['graph']): Model['graph'] {
  return { nodes: [...nodes], initializers: new Map(initializers), inputs: [...inputs], outputs: [...outputs], rest };
}

function weightBytes({ initializers }: Model['graph']): number {
  return [...initializers.values()].reduce((sum, { data }) => sum + dataLength(data), 0);
}
