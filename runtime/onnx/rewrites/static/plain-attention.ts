import { at } from '../../../../lib/at.ts';
import { attribute, DataType, type Graph, makeNode, makeTensor, type OnnxNode } from '../../format/model.ts';
import type { KvLayer } from '../../layout.ts';
import { unusable } from '../../unusable.ts';

/** Describes the shape of a static graph: the number of new cells of one run, and of past cells that they may see. */
export interface StaticShape {
  chunk: number;
  past: number;
}

/** Names the element type in which keys and values are stored between the runs of a static graph. */
export type KvType = 'float32' | 'float16';

/** Describes a GroupQueryAttention node that is to be replaced in a static graph. */
export interface StaticAttention {
  node: OnnxNode;
  kv: KvLayer;
  /** Name of the additive mask input, `[1, 1, chunk, past + chunk]`. */
  mask: string;
  /**
   * Names of the inputs with the cosines and sines for the new cells' positions, `[1, 1, chunk, head size]`. The first
   * `rotated` elements of a head are rotated, in pairs. Absent if the node does not apply rotary embeddings.
   */
  rotary?: { cos: string; sin: string; rotated: number };
}

/** Numbers of query heads and key-value heads of an attention, and the number of elements of a head. */
interface Heads {
  queries: number;
  keys: number;
  size: number;
}

/**
 * Returns nodes that compute the same as a GroupQueryAttention with operators that compilers for NPUs accept: MatMul,
 * Softmax, Split, Concat, Reshape, Transpose and elementwise ones. Adds the constants that the nodes read to the graph.
 * The past cells are inputs; only the new keys and values are outputs. Source of the operator: onnxruntime,
 * docs/ContribOperators.md, com.microsoft.GroupQueryAttention.
 *
 * @param shape numbers of cells, which compilers for NPUs need as constants; `any` for a graph that accepts all
 * @param kvType element type of the past cells and of the new keys and values; the attention itself is computed in
 *   32-bit floats
 */
export function plainAttention(
  graph: Graph,
  attention: StaticAttention,
  shape: StaticShape | 'any',
  kvType: KvType,
): OnnxNode[] {
  const { node, kv, mask, rotary } = attention;
  const heads = headsOf(node, kv);
  const group = heads.queries / heads.keys;
  const { chunk, cells, grouped } = sizesOf(shape, group);
  const name = `assay/attention/${kv.past[0]}`;
  const nodes: OnnxNode[] = [];
  const add = (op: string, inputs: string[], part: string, attributes: Parameters<typeof makeNode>[3] = {}): string => {
    nodes.push(makeNode(op, inputs, [part], attributes));
    return part;
  };
  const split = (input: string, sizes: number[], part: string): string[] => {
    const outputs = sizes.map((_, index) => `${part}/${index}`);
    nodes.push(makeNode('Split', [input, integers(graph, sizes)], outputs, { axis: -1 }));
    return outputs;
  };
  const reshape = (input: string, shape: number[], part: string): string =>
    add('Reshape', [input, integers(graph, shape)], part);
  const byHead = (input: string, count: number, part: string): string => {
    const rows = reshape(input, [1, chunk.kept, count, heads.size], `${part}/rows`);
    return add('Transpose', [rows], part, { perm: [0, 2, 1, 3] });
  };
  const interleaved = attribute(node, 'rotary_interleaved') === 1;
  const rotate = (input: string, part: string): string => {
    if (!rotary) return input;
    const swapped = add(
      'MatMul',
      [input, swapPairs(graph, heads.size, rotary.rotated / 2, interleaved)],
      `${part}/swapped`,
    );
    const [straight, crossed] = [
      add('Mul', [input, rotary.cos], `${part}/a`),
      add('Mul', [swapped, rotary.sin], `${part}/b`),
    ];
    return add('Add', [straight, crossed], `${part}/rotated`);
  };

  const [q, k, v] = node.inputs[1]
    ? node.inputs
    : split(
        at(node.inputs, 0),
        [heads.queries, heads.keys, heads.keys].map((count) => count * heads.size),
        `${name}/qkv`,
      );
  const query = rotate(byHead(q!, heads.queries, `${name}/q`), `${name}/q`);
  const newKey = rotate(byHead(k!, heads.keys, `${name}/k`), `${name}/k`);
  const newValue = byHead(v!, heads.keys, `${name}/v`);
  // Joins the past cells and the new ones. If past cells have 16 bits, new ones are rounded too, so that the run that
  // computes a cell uses the same values as later runs.
  const joined = (index: 0 | 1, fresh: string, part: string): string => {
    const [past, present] = [kv.past[index], kv.present[index]];
    if (kvType === 'float32') {
      add('Identity', [fresh], present);
      return add('Concat', [past, fresh], part, { axis: 2 });
    }
    add('Cast', [fresh], present, { to: DataType.float16 });
    const both = add('Concat', [past, present], `${part}/half`, { axis: 2 });
    return add('Cast', [both], part, { to: DataType.float });
  };
  const key = joined(0, newKey, `${name}/keys`);
  const value = joined(1, newValue, `${name}/values`);
  // The queries that share a key head are stacked, so that each key head needs one MatMul.
  const scaled = add('Mul', [query, float(graph, scaleOf(node, heads.size))], `${name}/scaled`);
  const transposed = add('Transpose', [key], `${name}/keys_transposed`, { perm: [0, 1, 3, 2] });
  const products = add(
    'MatMul',
    [reshape(scaled, [1, heads.keys, grouped, heads.size], `${name}/grouped`), transposed],
    `${name}/products`,
  );
  const capped = softCap(node, products);
  const scores = reshape(capped, [heads.keys, group, chunk.inferred, cells], `${name}/scores`);
  const weights = add('Softmax', [add('Add', [scores, mask], `${name}/masked`)], `${name}/weights`, { axis: -1 });
  const regrouped = reshape(weights, [1, heads.keys, grouped, cells], `${name}/weights_grouped`);
  const mixed = add('MatMul', [regrouped, value], `${name}/mixed`);
  const separate = reshape(mixed, [1, heads.queries, chunk.inferred, heads.size], `${name}/by_head`);
  const rows = add('Transpose', [separate], `${name}/by_row`, { perm: [0, 2, 1, 3] });
  reshape(rows, [1, chunk.kept, heads.queries * heads.size], at(node.outputs, 0));
  return nodes;

  function softCap(from: OnnxNode, input: string): string {
    const cap = attribute(from, 'softcap');
    if (typeof cap !== 'number' || cap === 0) return input;
    const flat = add('Tanh', [add('Mul', [input, float(graph, 1 / cap)], `${name}/small`)], `${name}/flat`);
    return add('Mul', [flat, float(graph, cap)], `${name}/capped`);
  }
}

/**
 * Returns the sizes that depend on the numbers of cells, as `Reshape` takes them: constants, or for any number 0 (keep
 * the input's size at this index) and -1 (infer it from the others).
 *
 * - `chunk`: new cells, where the input has that size at the same index (`kept`), and where it has not (`inferred`)
 * - `cells`: past and new cells, which every input has at the same index
 * - `grouped`: new cells of all queries that share a key head
 */
function sizesOf(
  shape: StaticShape | 'any',
  group: number,
): { chunk: { kept: number; inferred: number }; cells: number; grouped: number } {
  if (shape === 'any') return { chunk: { kept: 0, inferred: -1 }, cells: 0, grouped: -1 };
  const { chunk, past } = shape;
  return { chunk: { kept: chunk, inferred: chunk }, cells: past + chunk, grouped: group * chunk };
}

/** Throws `engine_failed`, with the reason, for an attention node that static graphs cannot express. */
export function checkAttention(node: OnnxNode, layer: number): void {
  const refuse = (what: string): never => {
    throw unusable(`layer ${layer} has ${what}, which has no static form`);
  };
  if (attribute(node, 'smooth_softmax')) refuse('a smooth softmax');
  if (node.inputs.slice(11).some(Boolean)) refuse('attention sinks');
}

function headsOf(node: OnnxNode, { heads, headSize }: KvLayer): Heads {
  const queries = attribute(node, 'num_heads');
  if (typeof queries !== 'number' || queries % heads !== 0)
    throw unusable('its number of query heads is not a multiple of its number of key-value heads');
  return { queries, keys: heads, size: headSize };
}

function scaleOf(node: OnnxNode, size: number): number {
  const scale = attribute(node, 'scale');
  return typeof scale === 'number' && scale !== 0 ? scale : 1 / Math.sqrt(size);
}

/**
 * Returns the indices of the two elements of a head that are rotated together: neighbours if interleaved, otherwise
 * half of the rotated size apart.
 */
export function pairOf(pair: number, pairs: number, interleaved: boolean): [first: number, second: number] {
  return interleaved ? [2 * pair, 2 * pair + 1] : [pair, pairs + pair];
}

/**
 * Adds a constant matrix R to the graph, and returns its name: (x · R)[first] = -x[second] and (x · R)[second] =
 * x[first] for each pair, and 0 for elements that are not rotated. A rotation is then x · cos + (x · R) · sin, and the
 * MatMul with R is exact. A rotation by Concat instead is computed wrongly by OpenVINO 2026.4 when it reads its own
 * binary (measured, docs/devices.md).
 */
function swapPairs(graph: Graph, size: number, pairs: number, interleaved: boolean): string {
  const name = `assay/swap_pairs/${size}_${pairs}_${interleaved}`;
  const matrix = new Float32Array(size * size);
  for (let pair = 0; pair < pairs; pair++) {
    const [first, second] = pairOf(pair, pairs, interleaved);
    matrix[second * size + first] = -1;
    matrix[first * size + second] = 1;
  }
  graph.initializers.set(name, makeTensor(name, [size, size], matrix));
  return name;
}

/** Adds a constant list of integers to the graph and returns its name. Equal lists share a constant. */
function integers(graph: Graph, values: readonly number[]): string {
  const name = `assay/integers/${values.join('_')}`;
  graph.initializers.set(name, makeTensor(name, [values.length], BigInt64Array.from(values, BigInt)));
  return name;
}

/** Adds a constant number to the graph and returns its name. */
function float(graph: Graph, value: number): string {
  const name = `assay/float/${value}`;
  graph.initializers.set(name, makeTensor(name, [], Float32Array.of(value)));
  return name;
}
