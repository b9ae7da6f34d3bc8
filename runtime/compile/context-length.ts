import { join } from 'node:path';
import { attentionWindow } from '../onnx/layout.ts';
import { attribute, type Graph, type Model, type Node } from '../onnx/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { property } from './source.ts';

/** Limits on the positions of any model, so that sizes stay computable. */
const MOST = 1 << 20;
const LEAST = 16;

/**
 * Returns the number of positions that the model supports: from its configuration and its rotary tables, as far as its
 * graph computes what the configuration says. Throws `engine_failed` if nothing states it.
 */
export async function contextLength(folder: string, { graph }: Model): Promise<number> {
  const config = await readBoundedJson(join(folder, 'config.json'), CONFIG_BOUNDS);
  const genai = await readBoundedJson(join(folder, 'genai_config.json'), CONFIG_BOUNDS);
  const text = property(config, 'text_config') ?? config;
  const stated = [
    property(config, 'max_position_embeddings'),
    property(text, 'max_position_embeddings'),
    property(property(genai, 'model'), 'context_length'),
  ].find(isLength);
  const length = Math.min(stated ?? Number.POSITIVE_INFINITY, tableLength(graph), faithfulLength(text, graph));
  if (!Number.isFinite(length))
    throw unusable('neither config.json nor genai_config.json says how long its context is');
  return Math.min(length, MOST);
}

/** Returns the positions of the rotary tables; one beyond their end would fail in the middle of an answer. */
function tableLength(graph: Graph): number {
  const tables = graph.nodes.map(
    (node) => graph.initializers.get(rotaryTable(node))?.dims[0] ?? Number.POSITIVE_INFINITY,
  );
  return Math.min(...tables);
}

/** Returns the name of the cosines, one row a position, that a node reads; empty for one that reads none. */
function rotaryTable(node: Node): string {
  if (node.op === 'MRotaryEmbedding') return node.inputs[2] ?? '';
  const rotates = node.op === 'GroupQueryAttention' && attribute(node, 'do_rotary') === 1;
  return rotates ? (node.inputs[7] ?? '') : '';
}

/**
 * Returns the number of positions up to which the graph equals the published model; `Infinity` if it does everywhere.
 * The exporter mobius 0.1 leaves out two things: the sliding windows of models with post-norms, so that a graph is
 * right up to one window; and Ministral 3's scaling of queries, a factor that is 1 up to the original context length
 * (transformers, `models/ministral3/modeling_ministral3.py`). Throws `engine_failed` if the two differ at every length.
 */
function faithfulLength(config: unknown, graph: Graph): number {
  const rope = property(config, 'rope_parameters');
  const first = property(rope, 'original_max_position_embeddings');
  const lengths = property(rope, 'llama_4_scaling_beta') && isLength(first) ? [first] : [];
  const window = property(config, 'sliding_window');
  const nodes = attentionNodes(graph);
  const windowless = nodes.length > 0 && nodes.every((node) => attentionWindow(node) === null);
  if (windowless && slides(config) && isLength(window)) {
    if (turnsByLayer(config)) {
      throw unusable(
        'its graph leaves out the sliding windows and their rotary positions that config.json describes; ' +
          'try the file of another exporter',
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
 * Tells whether sliding layers have other rotary positions than full ones. OLMo 3's older configurations have
 * `rope_scaling`, which holds only for full layers.
 */
function turnsByLayer(config: unknown): boolean {
  const rope = property(config, 'rope_parameters');
  const [full, sliding] = ['full_attention', 'sliding_attention'].map((type) => property(rope, type));
  if (full && sliding) return JSON.stringify(full) !== JSON.stringify(sliding);
  return property(config, 'model_type') === 'olmo3' && Boolean(property(config, 'rope_scaling'));
}

function attentionNodes(graph: Graph): Node[] {
  return graph.nodes.filter(({ op }) => op === 'GroupQueryAttention');
}

function isLength(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= LEAST;
}
