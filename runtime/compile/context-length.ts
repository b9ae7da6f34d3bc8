import { join } from 'node:path';
import { property } from '../../lib/json/property.ts';
import { attribute, type Graph, type OnnxModel, type OnnxNode } from '../onnx/format/model.ts';
import { attentionWindow } from '../onnx/layout.ts';
import { unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { lengthsOf } from '../store/prompt-length.ts';

/**
 * Bounds of a context length, in positions: a longer one is cut to `MOST`, and a configured one below `LEAST` is
 * ignored.
 */
const MOST = 1 << 20;
const LEAST = 16;

/**
 * Returns the number of positions that the model supports: the least of what its configuration states, what its rotary
 * tables contain, and the length up to which its graph computes what the configuration describes. Throws
 * `engine_failed` if nothing states a length, or if the graph leaves out what the configuration describes for every
 * length.
 */
export async function contextLength(folder: string, { graph }: OnnxModel): Promise<number> {
  const config = await readBoundedJson(join(folder, 'config.json'), CONFIG_BOUNDS);
  const genai = await readBoundedJson(join(folder, 'genai_config.json'), CONFIG_BOUNDS);
  const text = property(config, 'text_config') ?? config;
  const stated = [config, genai].map((one) => lengthsOf(one).context).find(isLength);
  const length = Math.min(stated ?? Number.POSITIVE_INFINITY, tableLength(graph), faithfulLength(text, graph));
  if (!Number.isFinite(length))
    throw unusable('neither config.json nor genai_config.json says how long its context is');
  return Math.min(length, MOST);
}

/**
 * Returns the number of positions in the shortest rotary table; `Infinity` if there is none. A run with a later
 * position would fail in the middle of an answer.
 */
function tableLength(graph: Graph): number {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const lengths = graph.nodes.flatMap(cosinesOf).map((name) => rowsOf(name, graph, producers));
  return Math.min(...lengths);
}

/** Returns the number of rows of the table from which a value is looked up; `Infinity` if there is none. */
function rowsOf(name: string, graph: Graph, producers: ReadonlyMap<string, OnnxNode>): number {
  const table = graph.initializers.get(name);
  if (table) return table.dims[0] ?? Number.POSITIVE_INFINITY;
  const node = producers.get(name);
  // Rotary positions in three parts (mRoPE) are looked up one by one, and then chosen between.
  const from = node?.op === 'Gather' ? node.inputs.slice(0, 1) : node?.op === 'Where' ? node.inputs.slice(1) : [];
  return Math.min(...from.map((input) => rowsOf(input, graph, producers)));
}

/** Returns the names of the cosines that a node reads: a table with a row for each position, or rows of one. */
function cosinesOf(node: OnnxNode): string[] {
  if (node.op === 'MRotaryEmbedding') return node.inputs.slice(2, 3);
  if (node.op === 'RotaryEmbedding' && node.domain === '') return node.inputs.slice(1, 2);
  const rotates = node.op === 'GroupQueryAttention' && attribute(node, 'do_rotary') === 1;
  return rotates ? node.inputs.slice(7, 8) : [];
}

/**
 * Returns the number of positions up to which the graph equals the published model; `Infinity` if it does everywhere.
 * The exporter mobius 0.1 omits two things: the sliding windows of models with post-norms, so a graph is correct up to
 * the length of one window; and the scaling of queries in Ministral 3, a factor that is 1 up to the original context
 * length (transformers, `models/ministral3/modeling_ministral3.py`). Throws `engine_failed` if graph and model differ
 * at every length.
 */
function faithfulLength(config: unknown, graph: Graph): number {
  const rope = property(config, 'rope_parameters');
  const first = property(rope, 'original_max_position_embeddings');
  const lengths = property(rope, 'llama_4_scaling_beta') && isLength(first) ? [first] : [];
  const window = property(config, 'sliding_window');
  const nodes = attentionNodes(graph);
  const windowless = nodes.length > 0 && nodes.every((node) => attentionWindow(node) === null);
  if (windowless && slides(config) && isLength(window)) {
    if (rotaryDiffersByLayer(config)) {
      throw unusable(
        'its graph leaves out the sliding windows and their rotary positions that config.json describes',
        'Try the file of another exporter.',
      );
    }
    lengths.push(window);
  }
  return Math.min(...lengths);
}

function slides(config: unknown): boolean {
  const types = property(config, 'layer_types');
  return Array.isArray(types) && types.includes('sliding_attention');
}

/**
 * Tells whether layers with a sliding window have other rotary positions than layers with full attention. In older
 * configurations of OLMo 3, `rope_scaling` applies to the layers with full attention only.
 */
function rotaryDiffersByLayer(config: unknown): boolean {
  const rope = property(config, 'rope_parameters');
  const [full, sliding] = ['full_attention', 'sliding_attention'].map((type) => property(rope, type));
  if (full && sliding) return JSON.stringify(full) !== JSON.stringify(sliding);
  return property(config, 'model_type') === 'olmo3' && Boolean(property(config, 'rope_scaling'));
}

function attentionNodes(graph: Graph): OnnxNode[] {
  return graph.nodes.filter(({ op }) => op === 'GroupQueryAttention');
}

function isLength(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= LEAST;
}
