import type { EncoderContract } from '../contracts/encoder-contracts.ts';
import type { Graph } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { GRAPH_INPUTS } from './encoder-graphs.ts';

/** Inputs and outputs that the graph of a contract must have. GLiNER2's encoder has other ones than its fused graph. */
const SIGNATURES: Readonly<Record<EncoderContract['name'], { inputs: readonly string[]; outputs: readonly string[] }>> =
  {
    laya: { inputs: ['marker_pos', 'marker_mask', 'qtype'], outputs: ['logits'] },
    julia: { inputs: ['marker_pos', 'marker_mask', 'qtype'], outputs: ['logits'] },
    jevhome: { inputs: ['marker_pos', 'qtype'], outputs: ['logits'] },
    opendecider: { inputs: [], outputs: ['logits'] },
    'decision-tune': { inputs: ['positions'], outputs: ['logits'] },
    nli: { inputs: [], outputs: ['logits'] },
    'open-decision': { inputs: [], outputs: ['choice_logits', 'score_logits'] },
    gliclass: { inputs: ['marker_pos'], outputs: ['logits'] },
    verdict: { inputs: ['marker_pos'], outputs: ['logits'] },
    'open-jev': { inputs: ['seg', 'pair_q', 'pair_opt'], outputs: ['logits'] },
    gliner2: { inputs: ['marker_positions'], outputs: ['logits'] },
  };

/** Throws `engine_failed` if a graph lacks an input or output of its contract, or has an input that is not known. */
export function checkGraph({ name }: EncoderContract, role: string, { inputs, outputs }: Graph): void {
  if (role !== 'model' && role !== 'encoder') return;
  const names = new Set(inputs.map((input) => input.name));
  const results = new Set(outputs.map((output) => output.name));
  const unknown = [...names].find((input) => !GRAPH_INPUTS.has(input));
  if (unknown !== undefined) throw unusable(`its graph has an input ${unknown}, which is not known`);
  const needed = role === 'encoder' ? { inputs: [], outputs: [] } : SIGNATURES[name];
  const missing = ['input_ids', 'attention_mask', ...needed.inputs].find((input) => !names.has(input));
  if (missing !== undefined) throw unusable(`its graph has no input ${missing}, which a ${name} model needs`);
  const lacking = needed.outputs.find((output) => !results.has(output));
  if (lacking !== undefined) throw unusable(`its graph has no output ${lacking}, which a ${name} model needs`);
}
