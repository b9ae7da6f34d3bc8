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
import type { GraphLayout, KvLayer } from '../layout.ts';

/** Name of the input that is true in a run of the branches of one job, whose KV is apart from that of their prefix. */
export const APART = 'branches_apart';
/** Name of the input that is true if such a run has the branches of several jobs, each with a prefix of its own. */
export const SEVERAL_JOBS = 'several_jobs';
/** Name of the input for the number of rows of each job, then of the remaining padding; only for several jobs. */
export const JOB_SIZES = 'job_sizes';
/** Name of the input for the number of rows of all jobs; only for several jobs. */
export const JOB_ROWS = 'job_rows';
/** Name of the input for the position of each row. It exists only in runs of branches, as do the next four. */
export const APART_POSITIONS = 'branch_positions';
/** Name of the input that says where the key and value of each row are written. */
export const APART_CELLS = 'branch_cells';
/** Name of the input for the row of each place in the branches, which all have equally many places. */
export const APART_SPREAD = 'branch_spread';
/** Name of the input for the place of each row. */
export const APART_GATHERED = 'branch_gathered';

/** Describes the input for the additive mask of the branches' own cells in some layers. */
export interface BranchMask {
  name: string;
  /** Number of tokens that a token sees in these layers; null for all. */
  window: number | null;
  /** Number of query heads for each key head in these layers. */
  group: number;
}

/** Returns the name of the input or output for the branches' own keys or values. */
export function apartName(name: string): string {
  return `apart/${name}`;
}

/** Describes an attention that can be computed in two parts. */
export interface Heads {
  /** Layer whose keys and values it reads. */
  layer: KvLayer;
  /** True if it writes them; false if another attention does, which comes before it. */
  writes: boolean;
  queries: number;
  keys: number;
  /** Number of elements of a head, and of those that rotary embeddings turn. */
  size: number;
  turned: number;
  /** Bound of scores, as `Attention.cap`. */
  cap: number | null;
  /** True if values are multiplied in columns (`COLUMNS`), because threads would divide them otherwise. */
  inColumns: boolean;
}

/**
 * Most elements of a head that onnxruntime's product of queries and keys adds in one order. How it divides more depends
 * on the numbers of rows and cells (core/mlas/lib/sgemm.cpp, `StrideK`).
 */
export const MOST_IN_ORDER = 128;

/**
 * Number of columns that onnxruntime gives a thread at least. A product of weights and values of so many is not divided
 * among threads, which would add over fewer columns in larger pieces.
 */
export const COLUMNS = 16;

/** Attributes of GroupQueryAttention that the two parts compute; others must be absent. */
const KNOWN = ['num_heads', 'kv_num_heads', 'scale', 'do_rotary', 'rotary_interleaved', 'local_window_size', 'softcap'];
const [KEY, PAST_KEY, COS, MASK] = [1, 3, 7, 10];

/**
 * Returns the heads of each attention node (`attentionNodes`); undefined if one cannot be computed in two parts,
 * because it has sinks or other parts that are not computed here.
 *
 * @param threads number of threads that may compute the graph
 */
export function twoPartHeads(
  { initializers }: Graph,
  { kv }: GraphLayout,
  attention: readonly OnnxNode[],
  threads: number,
): Heads[] | undefined {
  const heads = attention.flatMap((node, index): Heads[] => {
    const from = kv.findIndex(({ past }) => past[0] === node.inputs[PAST_KEY]);
    const [layer, owner] = [kv[from], attention[from]];
    const queries = attribute(node, 'num_heads');
    if (!layer || !owner || typeof queries !== 'number') return [];
    const plain =
      node.inputs.slice(MASK + 1).every((input) => input === '') &&
      [...node.attributes.keys()].every((name) => KNOWN.includes(name));
    if (!plain || !(index === from || sharesKeys(node, owner))) return [];
    const { heads: keys, headSize: size } = layer;
    const turned = 2 * (initializers.get(node.inputs[COS] ?? '')?.dims[1] ?? size / 2);
    const bound = attribute(node, 'softcap');
    const cap = typeof bound === 'number' && bound > 0 ? bound : null;
    return [{ layer, writes: index === from, queries, keys, size, turned, cap, inColumns: threads > keys }];
  });
  return heads.length === attention.length ? heads : undefined;
}

/** Tells whether a node's keys and values of new tokens are those that another one writes. */
function sharesKeys(node: OnnxNode, owner: OnnxNode): boolean {
  const of = ({ inputs }: OnnxNode) => [...inputs.slice(KEY, KEY + 2), ...inputs.slice(COS, COS + 2)].join();
  const alike = ['do_rotary', 'rotary_interleaved'].every((name) => attribute(node, name) === attribute(owner, name));
  return Boolean(node.inputs[KEY]) && of(node) === of(owner) && alike;
}

/**
 * Adds the inputs of two-part attention to a graph, and the constants that its nodes read. All have names of their own:
 *
 * - `branches_apart` bool `[1]`
 * - `several_jobs` bool `[1]`
 * - `job_sizes` int64 `[slots + 1]`, `job_rows` int64 `[1]`: numbers of rows
 * - `branch_positions` int64 `[1, rows]`
 * - `branch_cells` int64 `[rows, 1, 3]`: branch, 0 and index of the cell of each row
 * - `branch_spread` int64 `[branches, places]`: row at each place, any row at unused ones
 * - `branch_gathered` int64 `[rows]`: place of each row
 * - the masks, float `[branches, 1, places * heads of a group, cells]`
 * - for each layer, keys and values of the branches `[branches, key heads, cells, head size + 1]`, in place
 */
export function declareTwoParts(
  graph: Graph,
  layout: GraphLayout,
  heads: readonly Heads[],
  { slots, masks }: { slots: number; masks: readonly BranchMask[] },
): void {
  for (const one of heads) addConstants(graph, one, slots);
  const { int64, float, bool } = DataType;
  graph.inputs.push(
    { name: APART, dataType: bool, dims: [1] },
    { name: SEVERAL_JOBS, dataType: bool, dims: [1] },
    { name: JOB_SIZES, dataType: int64, dims: [slots + 1] },
    { name: JOB_ROWS, dataType: int64, dims: [1] },
    { name: APART_POSITIONS, dataType: int64, dims: [1, 'branch_rows'] },
    { name: APART_CELLS, dataType: int64, dims: ['branch_rows', 1, 3] },
    { name: APART_SPREAD, dataType: int64, dims: ['branches', 'branch_places'] },
    { name: APART_GATHERED, dataType: int64, dims: ['branch_rows'] },
    ...masks.map(({ name }) => ({
      name,
      dataType: float,
      dims: ['branches', 1, null, 'branch_length'],
    })),
  );
  for (const { past, present, heads, headSize } of layout.kv) {
    const dims = ['branches', heads, 'branch_length', headSize + 1];
    for (const name of past) graph.inputs.push({ name: apartName(name), dataType: float, dims });
    for (const name of present) graph.outputs.push({ name: apartName(name), dataType: float, dims });
  }
}

/** Adds the constants that the nodes of an attention read. */
function addConstants({ initializers }: Graph, heads: Heads, slots: number): void {
  const { queries, keys, size } = heads;
  const group = queries / keys;
  const add = (constant: string, dims: number[], values: readonly number[]) => {
    const name = nameOf(constant, heads);
    initializers.set(name, makeTensor(name, dims, BigInt64Array.from(values, BigInt)));
  };
  const pieces = piecesOf(size, MOST_IN_ORDER);
  const columns = piecesOf(size, COLUMNS);
  for (const [name, values] of Object.entries({
    byKeyHead: [-1, keys, size],
    pad: [0, 0, 0, 0, 0, 1],
    byHead: [-1, keys, group * size],
    headRows: [1, keys, -1, size],
    wide: [keys, -1, group * (size + 1)],
    own: [0, 0, -1, size + 1],
    places: [0, 0, -1, group * (size + 1)],
    back: [-1, keys, group * (size + 1)],
    cells: [-1, size + 1],
    widths: [size, 1],
    pieces,
    // The one element more changes no bit: it is 0 for all keys but one, which has nothing else.
    ownPieces: pieces.with(-1, (pieces.at(-1) ?? 0) + 1),
    cappedPieces: [...pieces, 1],
    columns,
    // One column alone has a kernel of its own.
    ownColumns: [...columns.slice(0, -1), (columns.at(-1) ?? 0) - 1, 2],
    result: [1, -1, queries * size],
    last: [-1],
    dummies: [0, 0, 0, 0, 0, 0, slots * group, 0],
    group: [group],
    from: [0],
    rowAxis: [2],
    joint: [queries * size, keys * size, keys * size],
    scoresByRow: [keys, -1, group, 0],
    scoresByHead: [1, keys, -1, 0],
    maskByRow: [1, -1, 1, 0],
  })) {
    add(name, [values.length], values);
  }
  const each = Array.from({ length: keys }, (_, head) => [0, head, 0]);
  add('heads', [keys, 3], each.flat());
}

/** Returns the sizes of the pieces of a head that are multiplied one after the other: `most` each, then the rest. */
function piecesOf(size: number, most: number): number[] {
  const whole = new Array<number>(Math.ceil(size / most) - 1).fill(most);
  return [...whole, size - whole.length * most];
}

function nameOf(constant: string, { queries, keys, size }: Heads): string {
  return `assay/two_part_${constant}/${queries}_${keys}_${size}`;
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
 * @param own names of the branches' keys and values before the run and of their mask, and for the result and the keys
 *   and values after it, which another attention has written already if this one does not
 */
export function twoPartAttention(
  node: OnnxNode,
  heads: Heads,
  prefixes: readonly { key: string; value: string; mask: string }[],
  own: { key: string; value: string; mask: BranchMask; outputs: readonly [string, string, string] },
): Subgraph['nodes'] {
  const { writes, queries, keys, size, turned, cap, inColumns } = heads;
  const columns = piecesOf(size, COLUMNS).length;
  const nodes: OnnxNode[] = [];
  const { name: mask, window } = own.mask;
  const [result, ownKey, ownValue] = own.outputs;
  let count = 0;
  const add = (op: string, inputs: string[], attributes: Record<string, NewAttribute> = {}, to?: string): string => {
    const output = to ?? `${result}/${op}_${count++}`;
    const domain = op === 'FusedMatMul' || op === 'RotaryEmbedding' ? 'com.microsoft' : '';
    nodes.push(makeNode(op, inputs, [output], attributes, domain));
    return output;
  };
  const constant = (name: string) => nameOf(name, heads);
  const shaped = (value: string, shape: string) => add('Reshape', [value, constant(shape)]);
  const number = (name: string, value: number) => constantOf(value, nodes, `${result}/${name}`);
  const pieces = piecesOf(size, MOST_IN_ORDER).length;
  /** Divides the last axis into as many pieces as a constant has sizes. */
  const split = (whole: string, sizes: string, count: number): string[] => {
    if (count === 1) return [whole];
    const parts = Array.from({ length: count }, (_, piece) => `${whole}/${sizes}_${piece}/${result}`);
    nodes.push(makeNode('Split', [whole, constant(sizes)], parts, { axis: 3 }));
    return parts;
  };
  /** Returns the product of each piece of queries and keys, into which a constant divides them. */
  const products = (queries: string, keys: string, sizes: string, count: number, alpha: number): string[] => {
    const ofKeys = split(keys, sizes, count);
    return split(queries, sizes, count).map((query, piece) =>
      add('FusedMatMul', [query, at(ofKeys, piece)], { transB: 1, alpha: { float: alpha } }),
    );
  };
  /** Returns the product of weights and values. */
  const weighed = (weights: string, values: string, sizes: string, count: number): string => {
    if (!inColumns) return add('MatMul', [weights, values]);
    const columns = split(values, sizes, count).map((one) => add('MatMul', [weights, one]));
    return columns.length > 1 ? add('Concat', columns, { axis: 3 }) : at(columns, 0);
  };
  const sumOf = (values: readonly string[]) => values.reduce((sum, value) => add('Add', [sum, value]));
  const capName = cap === null ? '' : number('cap', cap);
  const capped = (scores: string) =>
    cap === null ? scores : add('Mul', [add('Tanh', [add('Div', [scores, capName])]), capName]);
  const swapped = (value: string) => add('Transpose', [value], { perm: [1, 0, 2] });

  let [query = '', key = '', value = ''] = node.inputs;
  if (!node.inputs[KEY]) {
    const parts = ['q', 'k', 'v'].map((part) => `${result}/${part}`);
    nodes.push(makeNode('Split', [query, constant('joint')], parts, { axis: 2 }));
    [query = '', key = '', value = ''] = parts;
  }
  if (attribute(node, 'do_rotary')) {
    const interleaved = attribute(node, 'rotary_interleaved') === 1 ? 1 : 0;
    const rotated = (rows: string, count: number) =>
      add('RotaryEmbedding', [rows, APART_POSITIONS, ...node.inputs.slice(COS, COS + 2)], {
        num_heads: count,
        interleaved,
        ...(turned < size ? { rotary_embedding_dim: turned } : {}),
      });
    query = rotated(query, queries);
    if (writes) key = rotated(key, keys);
  }
  /** Returns numbers of query rows, of which each row has one for each head of a group. */
  const byGroup = (sizes: string) => add('Mul', [sizes, constant('group')]);
  const jobRows = prefixes.length === 1 ? '' : byGroup(JOB_ROWS);
  /** Returns the scores of the own cells and of cell 0, whose score is that of the first part and is capped already. */
  const ownProducts = (rows: string): string => {
    if (cap === null) return sumOf(products(rows, ownKey, 'ownPieces', pieces, 1));
    const parts = products(rows, ownKey, 'cappedPieces', pieces + 1, 1);
    return add('Add', [capped(sumOf(parts.slice(0, -1))), at(parts, pieces)]);
  };
  /** Splits rows of queries into those of each job. */
  const rowsOfJobs = (rows: string): string[] => {
    if (prefixes.length === 1) return [rows];
    const jobs = prefixes.map((_, job) => `${result}/job_${job}`);
    const padded = add('Pad', [rows, constant('dummies')]);
    nodes.push(makeNode('Split', [padded, byGroup(JOB_SIZES)], [...jobs, `${result}/no_job`], { axis: 2 }));
    return jobs;
  };
  const joined = (part: 0 | 1 | 2): string => {
    const values = parts.map((all) => all[part]);
    return values.length === 1 ? at(values, 0) : add('Concat', values, { axis: 2 });
  };
  /** Drops the rows of padding. */
  const used = (rows: string): string =>
    prefixes.length === 1 ? rows : add('Slice', [rows, constant('from'), jobRows, constant('rowAxis')]);
  if (writes) {
    // One more element, 0, for each key and value.
    const widened = (rows: string) => add('Pad', [shaped(rows, 'byKeyHead'), constant('pad')]);
    const cells = add('Add', [APART_CELLS, constant('heads')]);
    add('ScatterND', [own.key, cells, widened(key)], {}, ownKey);
    add('ScatterND', [own.value, cells, widened(value)], {}, ownValue);
  }

  const given = attribute(node, 'scale');
  const scale = typeof given === 'number' && given > 0 ? given : size ** -0.5;
  const asked = shaped(swapped(shaped(query, 'byHead')), 'headRows');
  // The largest weight is 1 / sum, because its exponential is 1.
  const most = (values: string) => add('ReduceMax', [values, constant('last')], { keepdims: 1 });
  const parts = rowsOfJobs(asked).map((rows, job): [most: string, weight: string, result: string] => {
    const { key, value, mask } = at(prefixes, job);
    const all = capped(sumOf(products(rows, key, 'pieces', pieces, scale)));
    // Rows that see nothing of the prefix have scores so low that its cell gets no weight.
    const scores =
      window === null
        ? all
        : shaped(add('Add', [shaped(all, 'scoresByRow'), shaped(mask, 'maskByRow')]), 'scoresByHead');
    const weights = add('Softmax', [scores], { axis: -1 });
    return [most(scores), most(weights), weighed(weights, value, 'columns', columns)];
  });
  const [about, weight] = [`${result}/about`, `${result}/weight`];
  const first = add('Concat', [used(joined(2)), used(joined(1))], { axis: 3 });
  const firstRows = shaped(swapped(shaped(first, 'wide')), 'cells');
  nodes.push(makeNode('Split', [firstRows, constant('widths')], [about, weight], { axis: 1 }));

  const scaled = add('Mul', [asked, number('scale', scale)]);
  const rows = swapped(shaped(add('Concat', [scaled, used(joined(0))], { axis: 3 }), 'wide'));
  const places = add('Gather', [rows, APART_SPREAD], { axis: 0 });
  const ownRows = shaped(add('Transpose', [places], { perm: [0, 2, 1, 3] }), 'own');
  const ownScores = add('Add', [ownProducts(ownRows), mask]);
  const ownWeights = add('Softmax', [ownScores], { axis: -1 });
  const second = shaped(weighed(ownWeights, ownValue, 'ownColumns', columns + 1), 'places');
  const flat = shaped(add('Transpose', [second], { perm: [0, 2, 1, 3] }), 'back');
  const gathered = shaped(add('Gather', [flat, APART_GATHERED], { axis: 0 }), 'cells');
  const [ownResult, share] = [`${result}/own`, `${result}/share`];
  nodes.push(makeNode('Split', [gathered, constant('widths')], [ownResult, share], { axis: 1 }));
  const sum = add('Add', [add('Mul', [about, share]), add('Mul', [ownResult, weight])]);
  const rest = add('Sub', [number('one', 1), share]);
  const total = add('Add', [share, add('Mul', [weight, rest])]);
  add('Reshape', [add('Div', [sum, total]), constant('result')], {}, result);
  return nodes;
}

/** Adds a node that gives a number. */
function constantOf(value: number, nodes: OnnxNode[], name: string): string {
  nodes.push(makeNode('Constant', [], [name], { value_float: { float: value } }));
  return name;
}
