import { at } from '../../../lib/at.ts';
import {
  attribute,
  DataType,
  type Graph,
  makeNode,
  makeTensor,
  type NewAttribute,
  type OnnxNode,
} from '../format/model.ts';
import type { Subgraph } from '../format/subgraph.ts';
import type { GraphLayout } from '../layout.ts';

/** Name of the input that is true in a run of the branches of one job, whose KV is apart from that of their prefix. */
export const APART = 'branches_apart';
/** Name of the input that is true if such a run has the branches of several jobs, each with a prefix of its own. */
export const SEVERAL_JOBS = 'several_jobs';
/** Name of the input for the number of query rows of each job, then of the remaining padding; only for several jobs. */
export const JOB_SIZES = 'job_sizes';
/** Name of the input for the number of query rows of all jobs; only for several jobs. */
export const JOB_ROWS = 'job_rows';
/** Name of the input for the position of each row. It exists only in runs of branches, as do the next five. */
export const APART_POSITIONS = 'branch_positions';
/** Name of the input that says where the key and value of each row and head are written. */
export const APART_CELLS = 'branch_cells';
/** Name of the input for the row of each place in the branches, which all have equally many places. */
export const APART_SPREAD = 'branch_spread';
/** Name of the input for the place of each row. */
export const APART_GATHERED = 'branch_gathered';
/** Name of the input for the shape of these places. */
export const APART_SHAPE = 'branch_shape';

/** Returns the name of the input for the additive mask of the branches' own cells, in layers with this window. */
export function apartMask(window: number | null): string {
  return window === null ? 'branch_mask' : `branch_mask_${window}`;
}

/** Returns the name of the input or output for the branches' own keys or values. */
export function apartName(name: string): string {
  return `apart/${name}`;
}

/** Numbers of heads of an attention, of the elements of a head, and of those that rotary embeddings turn. */
export interface Heads {
  queries: number;
  keys: number;
  size: number;
  turned: number;
}

/** Attributes of GroupQueryAttention that the two parts compute; others must be absent. */
const KNOWN = ['num_heads', 'kv_num_heads', 'scale', 'do_rotary', 'rotary_interleaved', 'local_window_size', 'softcap'];
const [KEY, COS, MASK] = [1, 7, 10];

/**
 * Returns the heads of attention nodes that can be computed in two parts; undefined if they cannot, because they differ
 * from layer to layer, share keys, or have sinks or other parts that are not computed here.
 */
export function twoPartHeads(
  { initializers }: Graph,
  layout: GraphLayout,
  attention: readonly OnnxNode[],
): Heads | undefined {
  const [first] = layout.kv;
  const queries = attribute(attention[0], 'num_heads');
  if (!first || typeof queries !== 'number') return undefined;
  const turned = 2 * (initializers.get(attention[0]?.inputs[COS] ?? '')?.dims[1] ?? first.headSize / 2);
  const heads = { queries, keys: first.heads, size: first.headSize, turned };
  const alike = layout.kv.every((layer) => layer.heads === heads.keys && layer.headSize === heads.size);
  const plain = attention.every(
    (node) =>
      attribute(node, 'num_heads') === queries &&
      node.inputs.slice(MASK + 1).every((input) => input === '') &&
      !attribute(node, 'softcap') &&
      [...node.attributes.keys()].every((name) => KNOWN.includes(name)),
  );
  return alike && plain && attention.length === layout.kv.length ? heads : undefined;
}

/**
 * Adds the inputs of two-part attention to a graph, and the constants that its nodes read. All have names of their own:
 *
 * - `branches_apart` bool `[1]`
 * - `several_jobs` bool `[1]`
 * - `job_sizes` int64 `[slots + 1]`, `job_rows` int64 `[1]`: numbers of rows, times the heads of a group
 * - `branch_positions` int64 `[1, rows]`
 * - `branch_cells` int64 `[rows * key heads, 3]`: branch, head and index of the cell of each row and head
 * - `branch_spread` int64 `[branches * places]`: row at each place, any row at unused ones
 * - `branch_gathered` int64 `[rows]`: place of each row
 * - `branch_shape` int64 `[4]`: any, places, key heads, elements of a group of query heads, each with one more
 * - `branch_mask` float `[branches, 1, places * heads of a group, cells]`, for each size of attention window
 * - for each layer, keys and values of the branches `[branches, key heads, cells, head size + 1]`, in place
 */
export function declareTwoParts(
  graph: Graph,
  layout: GraphLayout,
  { queries, keys, size }: Heads,
  { slots, masks }: { slots: number; masks: readonly { window: number | null }[] },
): void {
  const group = queries / keys;
  for (const [name, values] of Object.entries({
    flat: [-1, size],
    pad: [0, 0, 0, 1],
    byHead: [-1, keys, group * size],
    headRows: [1, keys, -1, size],
    wide: [keys, -1, group * (size + 1)],
    own: [0, 0, -1, size + 1],
    places: [0, 0, -1, group * (size + 1)],
    back: [-1, keys, group * (size + 1)],
    cells: [-1, size + 1],
    rows: [keys, -1, group * size],
    widths: [size, 1],
    result: [1, -1, queries * size],
    last: [-1],
    dummies: [0, 0, 0, 0, 0, 0, slots * group, 0],
    from: [0],
    rowAxis: [2],
    joint: [queries * size, keys * size, keys * size],
    scoresByRow: [keys, -1, group, 0],
    scoresByHead: [1, keys, -1, 0],
    maskByRow: [1, -1, 1, 0],
  })) {
    const constant = nameOf(name);
    graph.initializers.set(constant, makeTensor(constant, [values.length], BigInt64Array.from(values, BigInt)));
  }
  const { int64, float, bool } = DataType;
  graph.inputs.push(
    { name: APART, dataType: bool, dims: [1] },
    { name: SEVERAL_JOBS, dataType: bool, dims: [1] },
    { name: JOB_SIZES, dataType: int64, dims: [slots + 1] },
    { name: JOB_ROWS, dataType: int64, dims: [1] },
    { name: APART_POSITIONS, dataType: int64, dims: [1, 'branch_rows'] },
    { name: APART_CELLS, dataType: int64, dims: ['branch_row_heads', 3] },
    { name: APART_SPREAD, dataType: int64, dims: ['branch_places'] },
    { name: APART_GATHERED, dataType: int64, dims: ['branch_rows'] },
    { name: APART_SHAPE, dataType: int64, dims: [4] },
    ...masks.map(({ window }) => ({
      name: apartMask(window),
      dataType: float,
      dims: ['branches', 1, 'branch_place_heads', 'branch_length'],
    })),
  );
  const dims = ['branches', keys, 'branch_length', size + 1];
  for (const { past, present } of layout.kv) {
    for (const name of past) graph.inputs.push({ name: apartName(name), dataType: float, dims });
    for (const name of present) graph.outputs.push({ name: apartName(name), dataType: float, dims });
  }
}

function nameOf(constant: string): string {
  return `assay/two_part_${constant}`;
}

/**
 * Returns nodes that compute a GroupQueryAttention in two parts: over the prefix, which all branches share, and over
 * each branch's own cells. The first part becomes one more cell of the second one, whose score is the part's highest
 * one. With the weight s of this cell in the second part, and the highest weight w of the first one, which is one over
 * its sum of exponentials, the result is (s * first + w * second) / (s + w * (1 - s)). There is no logarithm, because
 * onnxruntime computes the last elements of one with another function than the others. The own cells of a branch begin
 * at index 1 whatever runs beside it, so every sum has the same order: the result does not depend on the other branches
 * in any bit.
 *
 * A key has one more element than a head, which is 1 for cell 0 only; a query has the first part's score there. So
 * the product of both adds this score to cell 0. A value has one more element too, which gives the weight of cell 0.
 *
 * Numbers of cells must be multiples of 64: onnxruntime's softmax adds whole blocks of so many elements in another
 * order than the rest.
 *
 * @param prefixes names of keys and values of the prefix of each job, `[1, key heads, cells, head size]`, and of the
 *   additive mask of a layer with a window, `[1, 1, rows, cells]`; the rows are in the order of the jobs. A prefix that
 *   no job uses has one cell, and gets the rows of padding
 * @param outputs names for the result and the branches' keys and values
 */
export function twoPartAttention(
  node: OnnxNode,
  { queries, keys, size, turned }: Heads,
  prefixes: readonly { key: string; value: string; mask: string }[],
  own: { key: string; value: string; window: number | null; outputs: readonly [string, string, string] },
): Subgraph['nodes'] {
  const nodes: OnnxNode[] = [];
  const { window } = own;
  const [result, ownKey, ownValue] = own.outputs;
  let count = 0;
  const add = (op: string, inputs: string[], attributes: Record<string, NewAttribute> = {}, to?: string): string => {
    const output = to ?? `${result}/${op}_${count++}`;
    const domain = op === 'FusedMatMul' || op === 'RotaryEmbedding' ? 'com.microsoft' : '';
    nodes.push(makeNode(op, inputs, [output], attributes, domain));
    return output;
  };
  const shaped = (value: string, shape: string) => add('Reshape', [value, nameOf(shape)]);
  const swapped = (value: string) => add('Transpose', [value], { perm: [1, 0, 2] });

  let [query = '', key = '', value = ''] = node.inputs;
  if (!node.inputs[KEY]) {
    const parts = ['q', 'k', 'v'].map((part) => `${result}/${part}`);
    nodes.push(makeNode('Split', [query, nameOf('joint')], parts, { axis: 2 }));
    [query = '', key = '', value = ''] = parts;
  }
  if (attribute(node, 'do_rotary')) {
    const interleaved = attribute(node, 'rotary_interleaved') === 1 ? 1 : 0;
    const rotated = (rows: string, heads: number) =>
      add('RotaryEmbedding', [rows, APART_POSITIONS, ...node.inputs.slice(COS, COS + 2)], {
        num_heads: heads,
        interleaved,
        ...(turned < size ? { rotary_embedding_dim: turned } : {}),
      });
    query = rotated(query, queries);
    key = rotated(key, keys);
  }
  /** Splits rows of queries into those of each job. */
  const rowsOfJobs = (rows: string): string[] => {
    if (prefixes.length === 1) return [rows];
    const jobs = prefixes.map((_, job) => `${result}/job_${job}`);
    const padded = add('Pad', [rows, nameOf('dummies')]);
    nodes.push(makeNode('Split', [padded, JOB_SIZES], [...jobs, `${result}/no_job`], { axis: 2 }));
    return jobs;
  };
  const joined = (part: 0 | 1 | 2): string => {
    const values = parts.map((all) => all[part]);
    return values.length === 1 ? at(values, 0) : add('Concat', values, { axis: 2 });
  };
  /** Drops the rows of padding. */
  const used = (rows: string): string =>
    prefixes.length === 1 ? rows : add('Slice', [rows, nameOf('from'), JOB_ROWS, nameOf('rowAxis')]);
  // One more element, 0, for each key and value.
  const widened = (rows: string) => add('Pad', [shaped(rows, 'flat'), nameOf('pad')]);
  add('ScatterND', [own.key, APART_CELLS, widened(key)], {}, ownKey);
  add('ScatterND', [own.value, APART_CELLS, widened(value)], {}, ownValue);

  const given = attribute(node, 'scale');
  const scale = typeof given === 'number' && given > 0 ? given : size ** -0.5;
  const asked = shaped(swapped(shaped(query, 'byHead')), 'headRows');
  // The largest weight is 1 / sum, because its exponential is 1.
  const most = (values: string) => add('ReduceMax', [values, nameOf('last')], { keepdims: 1 });
  const parts = rowsOfJobs(asked).map((rows, job): [most: string, weight: string, result: string] => {
    const { key: keys, value: values, mask } = at(prefixes, job);
    const all = add('FusedMatMul', [rows, keys], { transB: 1, alpha: { float: scale } });
    // Rows that see nothing of the prefix have scores so low that its cell gets no weight.
    const scores =
      window === null
        ? all
        : shaped(add('Add', [shaped(all, 'scoresByRow'), shaped(mask, 'maskByRow')]), 'scoresByHead');
    const weights = add('Softmax', [scores], { axis: -1 });
    return [most(scores), most(weights), add('MatMul', [weights, values])];
  });
  const [about, weight] = [`${result}/about`, `${result}/weight`];
  const first = add('Concat', [used(joined(2)), used(joined(1))], { axis: 3 });
  const firstRows = shaped(swapped(shaped(first, 'wide')), 'cells');
  nodes.push(makeNode('Split', [firstRows, nameOf('widths')], [about, weight], { axis: 1 }));

  const scaled = add('Mul', [asked, constantOf(scale, nodes, `${result}/scale`)]);
  const rows = swapped(shaped(add('Concat', [scaled, used(joined(0))], { axis: 3 }), 'wide'));
  const places = add('Reshape', [add('Gather', [rows, APART_SPREAD], { axis: 0 }), APART_SHAPE]);
  const ownRows = shaped(add('Transpose', [places], { perm: [0, 2, 1, 3] }), 'own');
  const ownScores = add('Add', [add('FusedMatMul', [ownRows, ownKey], { transB: 1 }), apartMask(window)]);
  const second = shaped(add('MatMul', [add('Softmax', [ownScores], { axis: -1 }), ownValue]), 'places');
  const flat = shaped(add('Transpose', [second], { perm: [0, 2, 1, 3] }), 'back');
  const gathered = shaped(add('Gather', [flat, APART_GATHERED], { axis: 0 }), 'cells');
  const [ownResult, share] = [`${result}/own`, `${result}/share`];
  nodes.push(makeNode('Split', [gathered, nameOf('widths')], [ownResult, share], { axis: 1 }));
  const sum = add('Add', [add('Mul', [about, share]), add('Mul', [ownResult, weight])]);
  const rest = add('Sub', [constantOf(1, nodes, `${result}/one`), share]);
  const total = add('Add', [share, add('Mul', [weight, rest])]);
  add('Reshape', [add('Div', [sum, total]), nameOf('result')], {}, result);
  return nodes;
}

/** Adds a node that gives a number. */
function constantOf(value: number, nodes: OnnxNode[], name: string): string {
  nodes.push(makeNode('Constant', [], [name], { value_float: { float: value } }));
  return name;
}
