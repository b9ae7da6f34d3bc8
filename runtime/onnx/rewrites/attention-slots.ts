import { at } from '../../../lib/at.ts';
import {
  DataType,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type ValueInfo,
} from '../format/model.ts';
import { makeIf, type Subgraph, valuesRead } from '../format/subgraph.ts';
import type { GraphLayout } from '../layout.ts';
import {
  APART,
  apartName,
  type BranchMask,
  declareTwoParts,
  type Heads,
  SEVERAL_JOBS,
  twoPartAttention,
  twoPartHeads,
} from './two-part-attention.ts';

/** Name of the input that is true in a run of several sequences. It exists once for all slots, as do the next three. */
export const SEVERAL = 'several_sequences';
/** Name of the input for the number of rows of each slot, then of the remaining padding. */
export const SLOT_SIZES = 'slot_sizes';
/** Name of the input for the number of rows of all sequences together. */
export const BATCH_ROWS = 'batch_rows';
/**
 * Name of the input for an empty tensor, from which the empty keys and values of unused slots are cut.
 */
export const NOTHING = 'nothing';
/** Name of each slot's input for the positions of its rows; `slotName` adds the slot's number. */
export const SLOT_POSITIONS = 'positions';
/** Name of each slot's input for the index of its last key, that of the run's last row. */
export const SLOT_LAST_KEY = 'last_key';
/** Name of each slot's input for the number of its keys, including those of the run's rows. */
export const SLOT_KEYS = 'keys';

/** Returns the name of one slot's input or output, for example `slot2/past_key_values.0.key`. */
export function slotName(slot: number, name: string): string {
  return `slot${slot}/${name}`;
}

/** Indices of inputs of GroupQueryAttention. KV, lengths, positions and mask differ from slot to slot. */
const [QUERY, VALUE, PAST_KEY, LAST_KEY, KEYS, POSITIONS, MASK] = [0, 2, 3, 5, 6, 9, 10];
/** Names of constants that all layers share. */
const [PADDING, FROM, AXIS] = ['assay/slot_padding', 'assay/slot_from', 'assay/slot_axis'];

/**
 * Rewrites a graph so that one run computes up to `count` sequences, each in a slot with its own KV. Linear layers
 * process the rows of all sequences, so the weights are read once. Each GroupQueryAttention is replaced by `count` of
 * them, each with the KV of its own slot, which is written in place. Rows are in the order of the slots. Slots without
 * a sequence come last and get a row of zeros, whose result is dropped.
 *
 * A run of one sequence would spend a fifth of its time on the attention of empty slots. Each layer's attention is
 * therefore an `If`: its other branch is the attention of slot 0 alone, and such a run needs the inputs of slot 0 only.
 *
 * New inputs of each slot (named by `slotName`):
 * - its KV, and the `masks`
 * - `positions` int64 `[1, rows]`
 * - `last_key` int32 `[1]`: index of the last key, that of the run's last row
 * - `keys` int32: number of keys, including those of the run's rows
 *
 * New inputs for all slots together:
 * - `several_sequences` bool `[1]`: true in a run of several sequences
 * - `slot_sizes` int64 `[count + 1]`, only for several: rows of each slot, then of the remaining padding
 * - `batch_rows` int64 `[1]`, only for several: rows of all sequences
 * - `nothing` float `[0]`: an empty tensor, from which the empty KV of the other slots is cut
 *
 * Must be called after `packBranches` and `gatherRows`. Deletes `attentionMask` from `layout`, and `positions` unless
 * another node reads them. Returns the masks of branches if a run may also compute these apart from their prefix
 * (`two-part-attention.ts`), and whether the graph has experts. Returns null and changes nothing if anything other
 * than attention reads the attention mask, or if an attention node has more than three outputs.
 *
 * @param masks mask inputs that `packBranches` added
 * @param count number of slots
 * @param threads number of threads that may compute the graph
 */
export function addAttentionSlots(
  model: OnnxModel,
  layout: GraphLayout,
  attention: readonly OnnxNode[],
  masks: readonly { name: string; window: number | null }[],
  { count, threads }: { count: number; threads: number },
): { branchMasks?: BranchMask[]; experts?: true } | null {
  const { graph } = model;
  const readElsewhere = namesReadElsewhere(graph, new Set(attention));
  if (layout.attentionMask && readElsewhere.has(layout.attentionMask)) return null;
  if (attention.some((node) => node.outputs.length > 3)) return null;

  for (const [name, values] of [
    [PADDING, BigInt64Array.of(0n, 0n, 0n, 0n, BigInt(count), 0n)],
    [FROM, BigInt64Array.of(0n)],
    [AXIS, BigInt64Array.of(1n)],
  ] as const) {
    graph.initializers.set(name, makeTensor(name, [values.length], values));
  }
  const slots = Array.from({ length: count }, (_, slot) => slot);
  const heads = twoPartHeads(graph, layout, attention, threads);
  const branchMasks = new Map<string, BranchMask>();
  for (const [index, node] of attention.entries()) {
    const slotOutputs = outputsOf(node, slots);
    const parts = heads && at(heads, index);
    const own = parts?.writes ? node.outputs.slice(1, 3).map(apartName) : [];
    const one = attentionOfOne(node, slots);
    addEmpty(graph, one, [...slotOutputs.slice(3), ...own]);
    let whenTrue: Subgraph | undefined;
    if (parts) {
      const mask = branchMask(node, parts, masks);
      branchMasks.set(mask.name, mask);
      whenTrue = attentionOfBranches(graph, node, { heads: parts, mask, slots });
    }
    // With one slot, no other runs than those of branches have several sequences.
    if (!whenTrue || count > 1) {
      const several = attentionOfSeveral(node, slots);
      addEmpty(graph, several, own);
      whenTrue = whenTrue ? eitherOf(APART, { whenTrue, whenFalse: several }) : several;
    }
    const outputs = [...slotOutputs, ...own];
    graph.nodes.splice(graph.nodes.indexOf(node), 1, makeIf(SEVERAL, outputs, { whenTrue, whenFalse: one }));
  }
  declareSlots(graph, layout, masks, slots, readElsewhere);
  if (heads) declareTwoParts(graph, layout, heads, { slots: count, masks: [...branchMasks.values()] });
  const experts = graph.nodes.some(({ op }) => op === 'MoE' || op === 'QMoE');
  return { ...(heads ? { branchMasks: [...branchMasks.values()] } : {}), ...(experts ? { experts } : {}) };
}

/** Returns the mask of the branches' own cells in a layer. */
function branchMask(
  node: OnnxNode,
  { queries, keys }: Heads,
  masks: readonly { name: string; window: number | null }[],
): BranchMask {
  const window = masks.find(({ name }) => name === node.inputs[MASK])?.window ?? null;
  const group = queries / keys;
  return { name: `branch_mask_${window ?? 'all'}_${group}`, window, group };
}

/**
 * Returns a branch that is one of two others. An output that one of them leaves empty has the dimensions of the other:
 * onnxruntime would refuse these at run time.
 */
function eitherOf(condition: string, branches: { whenTrue: Subgraph; whenFalse: Subgraph }): Subgraph {
  const outputs = branches.whenTrue.outputs.map((one, index) => {
    const other = at(branches.whenFalse.outputs, index);
    const { dims } = one.dims.length < other.dims.length ? other : one;
    return { ...one, dims, name: `${one.name}/either` };
  });
  const names = outputs.map(({ name }) => name);
  return { nodes: [makeIf(condition, names, branches)], outputs };
}

/**
 * Returns the branch for runs of the branches of one job or of several, each of which uses a slot for its prefix:
 * attention in two parts, and empty keys and values of the slots.
 */
function attentionOfBranches(
  graph: Graph,
  node: OnnxNode,
  { heads, mask, slots }: { heads: Heads; mask: BranchMask; slots: readonly number[] },
): Subgraph {
  const [output = '', ...present] = outputsOf(node, slots);
  const [key = '', value = ''] = node.inputs.slice(PAST_KEY, PAST_KEY + 2);
  const own = { key: apartName(key), value: apartName(value), mask };
  const written = heads.layer.present.map(apartName);
  const prefixes = slots.map((slot) => ({
    key: slotName(slot, key),
    value: slotName(slot, value),
    mask: slotName(slot, node.inputs[MASK] ?? ''),
  }));
  const over = (jobs: typeof prefixes): Subgraph => {
    const named = (name: string) => `${name}/jobs${jobs.length}`;
    const result = named(output);
    const [ownKey = '', ownValue = ''] = heads.writes ? written.map(named) : written;
    const nodes = twoPartAttention(node, heads, jobs, { ...own, outputs: [result, ownKey, ownValue] });
    const branch = { nodes, outputs: [tensor(result, 3)] };
    addEmpty(graph, branch, present.map(named));
    if (heads.writes) branch.outputs.push(tensor(ownKey, 4), tensor(ownValue, 4));
    return branch;
  };
  const one = over(prefixes.slice(0, 1));
  return slots.length > 1 ? eitherOf(SEVERAL_JOBS, { whenTrue: over(prefixes), whenFalse: one }) : one;
}

/**
 * Adds empty outputs to a branch, for keys and values that others return. They are cut from an input, because
 * onnxruntime takes longer to return constants from a branch.
 */
function addEmpty({ initializers }: Graph, branch: Subgraph, names: readonly string[]): void {
  if (names.length === 0) return;
  const sizes = `assay/slot_empty_${names.length}`;
  initializers.set(sizes, makeTensor(sizes, [names.length], new BigInt64Array(names.length)));
  const outputs = names.map((name) => `${name}/empty`);
  branch.nodes.push(makeNode('Split', [NOTHING, sizes], outputs, { axis: 0 }));
  branch.outputs.push(...outputs.map((name) => ({ name, dataType: DataType.float, dims: [0] })));
}

/** Returns the outputs of a layer's attention: its result, then keys and values of each slot. */
function outputsOf({ outputs: [output = '', ...present] }: OnnxNode, slots: readonly number[]): string[] {
  return [output, ...slots.flatMap((slot) => present.map((name) => slotName(slot, name)))];
}

/** Returns the branch for runs of several sequences: splits the rows, and computes the attention of every slot. */
function attentionOfSeveral(node: OnnxNode, slots: readonly number[]): Subgraph {
  const nodes: OnnxNode[] = [];
  const parts = node.inputs.slice(QUERY, VALUE + 1).map((input) => {
    if (!input) return slots.map(() => '');
    const padded = `${input}/padded`;
    const split = slots.map((slot) => slotName(slot, input));
    nodes.push(makeNode('Pad', [input, PADDING], [padded]));
    nodes.push(makeNode('Split', [padded, SLOT_SIZES], [...split, `${input}/unused`], { axis: 1 }));
    return split;
  });
  const [result = '', ...present] = outputsOf(node, slots).map((name) => `${name}/several`);
  const results = slots.map((slot) => slotName(slot, result));
  for (const slot of slots) {
    const rows = parts.map((part) => part[slot] ?? '');
    nodes.push(attentionOfSlot(node, slot, rows, [results[slot] ?? '', ...present.slice(2 * slot, 2 * slot + 2)]));
  }
  const all = `${result}/all`;
  nodes.push(makeNode('Concat', results, [all], { axis: 1 }));
  nodes.push(makeNode('Slice', [all, FROM, BATCH_ROWS, AXIS], [result]));
  return { nodes, outputs: [tensor(result, 3), ...present.map((name) => tensor(name, 4))] };
}

/** Returns the branch for runs of one sequence, without the keys and values of the other slots. */
function attentionOfOne(node: OnnxNode, slots: readonly number[]): Subgraph {
  const [result = '', key = '', value = ''] = outputsOf(node, slots).map((name) => `${name}/one`);
  const nodes = [attentionOfSlot(node, 0, node.inputs.slice(QUERY, VALUE + 1), [result, key, value])];
  return { nodes, outputs: [tensor(result, 3), tensor(key, 4), tensor(value, 4)] };
}

/** Returns an attention node over the KV of one slot, for the given queries, keys and values. */
function attentionOfSlot(node: OnnxNode, slot: number, rows: readonly string[], outputs: string[]): OnnxNode {
  const inputs = [...rows, ...node.inputs.slice(PAST_KEY)];
  for (const own of [PAST_KEY, PAST_KEY + 1, MASK]) inputs[own] = slotName(slot, inputs[own] ?? '');
  inputs[LAST_KEY] = slotName(slot, SLOT_LAST_KEY);
  inputs[KEYS] = slotName(slot, SLOT_KEYS);
  inputs[POSITIONS] = slotName(slot, SLOT_POSITIONS);
  return { ...node, name: slotName(slot, node.name), inputs, outputs };
}

/** Describes a float tensor with `rank` dimensions of any size. */
function tensor(name: string, rank: number): ValueInfo {
  return { name, dataType: DataType.float, dims: new Array<null>(rank).fill(null) };
}

function declareSlots(
  graph: Graph,
  layout: GraphLayout,
  masks: readonly { name: string }[],
  slots: readonly number[],
  readElsewhere: ReadonlySet<string>,
): void {
  const past = new Set(layout.kv.flatMap((layer) => layer.past));
  const present = new Set(layout.kv.flatMap((layer) => layer.present));
  const perSlot = new Set([...past, ...masks.map(({ name }) => name)]);
  const own = graph.inputs.filter(({ name }) => perSlot.has(name));
  const results = graph.outputs.filter(({ name }) => present.has(name));
  const gone = new Set([...perSlot, ...(layout.attentionMask ? [layout.attentionMask] : [])]);
  if (layout.positions && !readElsewhere.has(layout.positions)) gone.add(layout.positions);
  graph.inputs = graph.inputs.filter(({ name }) => !gone.has(name));
  graph.outputs = graph.outputs.filter(({ name }) => !present.has(name));
  for (const slot of slots) {
    /** Makes the symbolic dimensions of one slot independent of those of the others. */
    const renamed = (dims: (number | string | null)[]) =>
      dims.map((dim) => (typeof dim === 'string' ? slotName(slot, dim) : dim));
    for (const info of own) graph.inputs.push({ ...info, name: slotName(slot, info.name), dims: renamed(info.dims) });
    graph.inputs.push(
      { name: slotName(slot, SLOT_POSITIONS), dataType: DataType.int64, dims: [1, slotName(slot, 'rows')] },
      { name: slotName(slot, SLOT_LAST_KEY), dataType: DataType.int32, dims: [1] },
      { name: slotName(slot, SLOT_KEYS), dataType: DataType.int32, dims: [] },
    );
    for (const info of results) {
      graph.outputs.push({ ...info, name: slotName(slot, info.name), dims: renamed(info.dims) });
    }
  }
  graph.inputs.push(
    { name: SEVERAL, dataType: DataType.bool, dims: [1] },
    { name: SLOT_SIZES, dataType: DataType.int64, dims: [slots.length + 1] },
    { name: BATCH_ROWS, dataType: DataType.int64, dims: [1] },
    { name: NOTHING, dataType: DataType.float, dims: [0] },
  );
  delete layout.attentionMask;
  if (layout.positions && gone.has(layout.positions)) delete layout.positions;
}

/**
 * Returns the names of all values that the outputs depend on, other than through the inputs of attention nodes for
 * lengths and positions.
 */
function namesReadElsewhere(graph: Graph, attention: ReadonlySet<OnnxNode>): Set<string> {
  const needed = new Set(graph.outputs.map(({ name }) => name));
  for (const node of graph.nodes.toReversed()) {
    if (!node.outputs.some((output) => needed.has(output))) continue;
    const replaced = attention.has(node) ? [LAST_KEY, KEYS, POSITIONS].map((index) => node.inputs[index]) : [];
    for (const input of valuesRead(node)) if (!replaced.includes(input)) needed.add(input);
  }
  return needed;
}
