import type { StoredTensor, WeightSource } from '../checkpoint/weight-source.ts';
import { DataType, makeTensor } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { ConfigKeys } from './config-keys.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { linear } from './linear.ts';

/** Gives the weights of a checkpoint by their full names, and remembers which it has given. */
export class EncoderWeights {
  readonly #source: WeightSource;
  readonly #given = new Set<string>();

  constructor(source: WeightSource) {
    this.#source = source;
  }

  /** Returns a weight. Throws `engine_failed` if it is missing or has other dimensions. */
  get(name: string, ...dims: number[]): StoredTensor {
    const stored = this.#source.get(name);
    if (!stored) throw unusable(`its checkpoint lacks the weight "${name}"`);
    if (stored.dims.join() !== dims.join()) {
      throw unusable(`the weight "${name}" has the dimensions ${stored.dims.join('×')}, not ${dims.join('×')}`);
    }
    this.#given.add(name);
    return stored;
  }

  /** Returns a weight, or undefined if the checkpoint has none of that name. */
  optional(name: string, ...dims: number[]): StoredTensor | undefined {
    return this.#source.has(name) ? this.get(name, ...dims) : undefined;
  }

  has(name: string): boolean {
    return this.#source.has(name);
  }

  /** Throws `engine_failed` for a weight that was not given, and is not one of `others`. */
  checkAllGiven(others: RegExp): void {
    const left = [...this.#source.keys()].find((name) => !this.#given.has(name) && !others.test(name));
    if (left !== undefined) throw unusable(`its checkpoint has the weight "${left}", which is not known`);
  }
}

/** Describes a ModernBERT encoder, as its `config.json` does. */
export interface ModernBert {
  hidden: number;
  inner: number;
  heads: number;
  vocab: number;
  epsilon: number;
  positions: number;
  /** For each layer: the base of its rotary positions, and the tokens that it sees on each side (null: all). */
  layers: readonly { theta: number; window: number | null }[];
  /** Pooling of a sequence for classification. */
  pooling: 'cls' | 'mean';
}

/** Reads the configuration of a ModernBERT encoder. Throws `Refused` for a key or value that is not known. */
export function readModernBert(config: object): ModernBert {
  const keys = new ConfigKeys(config, { norm_eps: 1e-5, local_attention: 128, global_attn_every_n_layers: 3 });
  keys.only({
    model_type: ['modernbert'],
    hidden_activation: ['gelu'],
    classifier_activation: ['gelu'],
    is_encoder_decoder: [false],
  });
  const count = keys.size('num_hidden_layers');
  const every = keys.size('global_attn_every_n_layers');
  const types = keys.list<string>('layer_types', 'string', count);
  const rope = keys.value('rope_parameters');
  const theta = (kind: string, key: string, usual: number): number => {
    const stated = (rope as Record<string, { rope_theta?: number; rope_type?: string }> | undefined)?.[kind];
    if (stated?.rope_type !== undefined && stated.rope_type !== 'default') throw keys.refusal('rope_parameters');
    return stated?.rope_theta ?? keys.number(key, usual);
  };
  const global = theta('full_attention', 'global_rope_theta', 160_000);
  const local = theta('sliding_attention', 'local_rope_theta', 10_000);
  const window = Math.floor(keys.size('local_attention') / 2);
  if (window === 0) throw keys.refusal('local_attention');
  const pooling = keys.text('classifier_pooling', 'cls');
  if (pooling !== 'cls' && pooling !== 'mean') throw keys.refusal('classifier_pooling');
  const encoder: ModernBert = {
    hidden: keys.size('hidden_size'),
    inner: keys.size('intermediate_size'),
    heads: keys.size('num_attention_heads'),
    vocab: keys.size('vocab_size'),
    epsilon: keys.number('norm_eps'),
    positions: keys.size('max_position_embeddings'),
    layers: Array.from({ length: count }, (_, layer) => {
      const full = types ? types[layer] === 'full_attention' : layer % every === 0;
      return full ? { theta: global, window: null } : { theta: local, window };
    }),
    pooling,
  };
  // Training, classifiers and biases: which weights there are shows in the checkpoint.
  keys.ignore(['architectures', 'attention_bias', 'mlp_bias', 'norm_bias', 'decoder_bias', 'classifier_bias']);
  keys.ignore(['embedding_dropout', 'mlp_dropout', 'classifier_dropout', 'initializer_cutoff_factor']);
  keys.ignore(['cls_token_id', 'sparse_prediction', 'sparse_pred_ignore_index', 'deterministic_flash_attn']);
  keys.ignore(['reference_compile', 'repad_logits_with_grad', 'position_embedding_type', 'tie_word_embeddings']);
  keys.ignore([
    'gradient_checkpointing',
    'layer_norm_eps',
    '_name_or_path',
    'laya',
    'global_rope_theta',
    'local_rope_theta',
  ]);
  keys.end();
  return encoder;
}

/** Adds a layer norm of the last axis. */
export function layerNorm(
  graph: GraphBuilder,
  x: string,
  weight: StoredTensor,
  bias: StoredTensor | undefined,
  epsilon: number,
): string {
  const inputs = [x, graph.weight(weight), ...(bias ? [graph.weight(bias)] : [])];
  return graph.add('LayerNormalization', inputs, { axis: -1, epsilon: { float: epsilon } });
}

/** Inputs and constants that all layers share. */
interface Shared {
  mask: string;
  /** Number of rows and of tokens of a run, as values of the graph. */
  rows: string;
  tokens: string;
  local: Local | null;
}

/**
 * Adds a ModernBERT encoder: token ids and attention mask in, the states after its last norm out, `[rows, tokens,
 * hidden]`.
 *
 * @param prefix beginning of the names of its weights
 */
export function modernBert(graph: GraphBuilder, encoder: ModernBert, weights: EncoderWeights, prefix: string): string {
  const { hidden, inner, vocab, layers } = encoder;
  const tokens = graph.input('input_ids', DataType.int64, ['rows', 'tokens']);
  graph.input('attention_mask', DataType.int64, ['rows', 'tokens']);
  const { norm, dense } = layerWriters(graph, encoder, weights, prefix, 'optional');
  const shape = graph.add('Shape', [tokens]);
  const at = (index: number): string => graph.add('Gather', [shape, graph.integers(index)], { axis: 0 });
  const shared: Shared = {
    mask: graph.add('Cast', ['attention_mask'], { to: DataType.int32 }),
    rows: at(0),
    tokens: at(1),
    local: null,
  };
  const windows = new Set(layers.flatMap(({ window }) => (window === null ? [] : [window])));
  for (const window of windows) shared.local = localBlocks(graph, shared, window);
  const embedding = graph.weight(weights.get(`${prefix}embeddings.tok_embeddings.weight`, vocab, hidden));
  let x = norm(graph.add('Gather', [embedding, tokens]), 'embeddings.norm');
  for (const [number, layer] of layers.entries()) {
    const at = `layers.${number}`;
    const input = weights.has(`${prefix}${at}.attn_norm.weight`) ? norm(x, `${at}.attn_norm`) : x;
    const parts = graph.split(dense(input, `${at}.attn.Wqkv`, 3 * hidden, hidden), [hidden, hidden, hidden]);
    const mixed = attention(graph, encoder, parts, layer, shared);
    x = graph.add('Add', [x, dense(mixed, `${at}.attn.Wo`, hidden, hidden)]);
    const [value = '', gate = ''] = graph.split(dense(norm(x, `${at}.mlp_norm`), `${at}.mlp.Wi`, 2 * inner, hidden), [
      inner,
      inner,
    ]);
    const gated = graph.add('Mul', [graph.contrib('Gelu', [value]), gate]);
    x = graph.add('Add', [x, dense(gated, `${at}.mlp.Wo`, hidden, inner)]);
  }
  return norm(x, 'final_norm');
}

function attention(
  graph: GraphBuilder,
  { hidden, heads, positions }: ModernBert,
  [query = '', key = '', value = '']: readonly string[],
  { theta, window }: ModernBert['layers'][number],
  { mask, local }: Shared,
): string {
  const [cos, sin] = rotaryTables(graph, theta, positions, hidden / heads);
  const rotated = (x: string): string =>
    graph.contrib('RotaryEmbedding', [x, graph.integers(0), cos, sin], { num_heads: heads });
  const [q, k] = [rotated(query), rotated(key)];
  if (window === null || !local) {
    return graph.contrib('MultiHeadAttention', [q, k, value, '', mask], { num_heads: heads });
  }
  const blocks = [local.queries(q, hidden), local.keys(k, hidden), local.keys(value, hidden)];
  const mixed = graph.contrib('MultiHeadAttention', [...blocks, '', '', local.bias], { num_heads: heads });
  return local.back(mixed, hidden);
}

/** Computes local attention in blocks: each block of queries sees the keys of its own and both neighbouring blocks. */
interface Local {
  /** Names what is added to the scores: 0 where a query sees a key, and a very low number elsewhere. */
  bias: string;
  queries(x: string, width: number): string;
  keys(x: string, width: number): string;
  back(x: string, width: number): string;
}

/** Score of a key that a query does not see. Not minus infinity: padding sees nothing, and must not become NaN. */
const UNSEEN = -1e9;

/**
 * Adds what all layers with a window share. A row is cut into blocks of as many tokens as the window has on each side,
 * so that a query's window is within three blocks: the scores of 192 keys are computed instead of those of the row.
 */
function localBlocks(graph: GraphBuilder, { mask, rows, tokens }: Shared, window: number): Local {
  const size = graph.integers(window);
  const blocks = graph.add('Div', [graph.add('Add', [tokens, graph.integers(window - 1)]), size]);
  const padded = graph.add('Mul', [blocks, size]);
  const missing = graph.add('Sub', [padded, tokens]);
  const all = graph.add('Mul', [rows, blocks]);
  const shapeOf = (...parts: string[]): string => graph.add('Concat', parts, { axis: 0 });
  const zero = graph.integers(0);
  /** Pads the tokens of `[rows, tokens, …]` at both ends. */
  const pad = (x: string, before: string, after: string, axes: number): string => {
    const none = Array.from({ length: axes - 2 }, () => zero);
    return graph.add('Pad', [x, shapeOf(zero, before, ...none, zero, after, ...none)]);
  };
  const outer = graph.add('Add', [missing, size]);
  /** Returns three blocks of tokens for each block: `[rows · blocks, 3 · window, …]`. */
  const neighbours = (x: string, width: number | null): string => {
    const wide = pad(x, size, outer, width === null ? 2 : 3);
    const last = width === null ? [] : [graph.integers(width)];
    const parts = [0, 1, 2].map((shift) => {
      const start = graph.integers(shift * window);
      const end = graph.add('Add', [padded, start]);
      const slice = graph.add('Slice', [wide, start, end, graph.integers(1)]);
      return graph.add('Reshape', [slice, shapeOf(all, size, ...last)]);
    });
    return graph.add('Concat', parts, { axis: 1 });
  };
  const seen = graph.add('Cast', [neighbours(mask, null)], { to: DataType.float });
  const masked = graph.add('Mul', [graph.add('Sub', [seen, graph.float(1)]), graph.float(-UNSEEN)]);
  const keyBias = graph.add('Unsqueeze', [masked, graph.integers(1, 2)]);
  // Query `i` of a block is at the place `window + i` of its three blocks.
  const near = Float32Array.from({ length: window * 3 * window }, (_, index) => {
    const [query, key] = [Math.floor(index / (3 * window)), index % (3 * window)];
    return Math.abs(window + query - key) <= window ? 0 : UNSEEN;
  });
  const band = graph.tensor(makeTensor(`window/${window}`, [1, 1, window, 3 * window], near));
  return {
    bias: graph.add('Max', [graph.add('Add', [keyBias, band]), graph.float(UNSEEN)]),
    queries: (x, width) => graph.add('Reshape', [pad(x, zero, missing, 3), shapeOf(all, size, graph.integers(width))]),
    keys: (x, width) => neighbours(x, width),
    back: (x, width) => {
      const joined = graph.add('Reshape', [x, shapeOf(rows, padded, graph.integers(width))]);
      return graph.add('Slice', [joined, zero, tokens, graph.integers(1)]);
    },
  };
}

/** Adds the cosines and sines of all positions for a base, once. */
function rotaryTables(graph: GraphBuilder, theta: number, positions: number, size: number): [string, string] {
  const half = size / 2;
  const table = (name: string, of: (angle: number) => number): string =>
    graph.tensor(
      makeTensor(
        `${name}/${theta}`,
        [positions, half],
        Float32Array.from({ length: positions * half }, (_, index) => {
          // PyTorch computes the frequencies in 32 bits.
          const frequency = Math.fround(1 / Math.fround(theta ** Math.fround((2 * (index % half)) / size)));
          return of(Math.fround(Math.floor(index / half) * frequency));
        }),
      ),
    );
  return [table('cos', Math.cos), table('sin', Math.sin)];
}

/**
 * Returns the writers of an encoder's norms and dense layers, by the names of their weights.
 *
 * @param bias `optional` if a layer may have none
 */
export function layerWriters(
  graph: GraphBuilder,
  { hidden, epsilon }: { hidden: number; epsilon: number },
  weights: EncoderWeights,
  prefix: string,
  bias: 'get' | 'optional',
) {
  return {
    norm(x: string, name: string): string {
      const [gain, shift] = [
        weights.get(`${prefix}${name}.weight`, hidden),
        weights[bias](`${prefix}${name}.bias`, hidden),
      ];
      return layerNorm(graph, x, gain, shift, epsilon);
    },
    dense(x: string, name: string, outputs: number, inputs: number): string {
      const matrix = weights.get(`${prefix}${name}.weight`, outputs, inputs);
      return linear(graph, x, matrix, weights[bias](`${prefix}${name}.bias`, outputs));
    },
  };
}
