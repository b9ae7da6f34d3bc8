import { at } from '../../../lib/at.ts';
import { attribute, attributeFields, DataType, type OnnxModel, type OnnxNode } from '../format/model.ts';
import { attentionWindow, type GraphLayout } from '../layout.ts';

export interface MaskInput {
  name: string;
  window: number | null;
}

/**
 * Rewrites a graph so that one run computes the tokens of several branches: every GroupQueryAttention gets the tokens'
 * positions and an additive mask `[1, 1, new, all]` as inputs. The operator's own window counts cells of the KV buffer,
 * which is wrong for branches side by side, so layers with a window get a separate mask, and the operator's window is
 * turned off. Adds the input `position_ids` to the graph and to `layout` if there is none. Returns the names of the
 * mask inputs and their windows (null: no window). Source: onnxruntime, docs/ContribOperators.md,
 * com.microsoft.GroupQueryAttention, inputs 9 and 10.
 */
export function packBranches(model: OnnxModel, layout: GraphLayout, attention: readonly OnnxNode[]): MaskInput[] {
  const { graph } = model;
  if (!layout.positions) {
    layout.positions = 'position_ids';
    graph.inputs.push({ name: layout.positions, dataType: DataType.int64, dims: ['batch_size', 'sequence_length'] });
  }
  const masks = new Map<number | null, string>();
  for (const node of attention) {
    const window = attentionWindow(node);
    const mask = window === null ? 'tree_mask' : `tree_mask_${window}`;
    masks.set(window, mask);
    while (node.inputs.length < 11) node.inputs.push('');
    // Without rotary embeddings of its own, the operator needs no positions.
    if (attribute(node, 'do_rotary')) node.inputs[9] = layout.positions;
    node.inputs[10] = mask;
    node.attributes.set('local_window_size', attributeFields('local_window_size', -1));
  }
  const dataType = graph.inputs.find((input) => input.name === at(layout.kv, 0).past[0])!.dataType;
  for (const name of masks.values()) {
    graph.inputs.push({ name, dataType, dims: [1, 1, 'sequence_length', 'total_sequence_length'] });
  }
  return Array.from(masks, ([window, name]) => ({ name, window }));
}

/**
 * Makes every layer keep the KV of the whole sequence. In graphs from the onnxruntime-genai builder since 0.18,
 * sliding-window layers discard the KV outside the window (`sliding_window_cache`), and with it parts of the prefix
 * that other branches still need.
 */
export function keepWholePast({ graph }: OnnxModel): void {
  for (const node of graph.nodes) node.attributes.delete('sliding_window_cache');
}
