import type { Rotary } from './rotary.ts';

/** Describes what a decoder computes: the numbers of its configuration, and where its weights are. */
export interface Architecture {
  /** `model_type` of the text model. */
  family: string;
  vocab: number;
  hidden: number;
  /** Number of positions that the model supports. */
  context: number;
  /** Added to the mean square in all norms. */
  epsilon: number;
  /** Added to the weights of all norms. */
  normOffset: 0 | 1;
  activation: Activation;
  /** Factors of the embeddings, of what each part of a layer adds to the stream, and of the logits. */
  scales: { embedding: number; residual: number; logits: number };
  /** Bound c of logits: `c * tanh(x / c)`; null if they have none. */
  logitCap: number | null;
  /** True if the configuration lets the embeddings be the output head. The checkpoint may still have a head. */
  tied: boolean;
  layers: readonly Layer[];
  /** Embeddings that each layer has of its own (Gemma 4 E2B): their size and their vocabulary; null for none. */
  layerInputs: { size: number; vocab: number } | null;
  /** True if the stream is multiplied by a factor at the end of each layer (Gemma 4). */
  layerFactors: boolean;
  names: Names;
}

export interface Layer {
  mixer: Attention | Convolution | DeltaNet;
  /** Number of elements inside the feed-forward part. */
  inner: number;
  /** True if the matrices of the feed-forward part have biases. */
  innerBias: boolean;
  /** Experts instead of one feed-forward part; null for none. */
  experts: Experts | null;
}

/** Describes a gated convolution of each element over the last tokens (LFM2). */
export interface Convolution {
  kind: 'convolution';
  /** Number of tokens that it sees. */
  width: number;
  biased: boolean;
}

/** Describes a gated delta net, whose memory of all tokens has a fixed size (Qwen 3.5). */
export interface DeltaNet {
  kind: 'delta';
  keyHeads: number;
  valueHeads: number;
  keySize: number;
  valueSize: number;
  /** Number of tokens that its convolution sees. */
  width: number;
}

/** Describes a mixture of experts: which are used for a token, and what each computes. */
export interface Experts {
  count: number;
  used: number;
  /** Number of elements inside an expert. */
  inner: number;
  /** Softmax or sigmoid of the router's scores; `normalised`: the weights of the chosen experts have the sum 1. */
  routing: {
    kind: 'softmax' | 'sigmoid';
    normalised: boolean;
    scale: number;
    /** Name of a bias that counts when experts are chosen, but not in their weights; null for none. */
    bias: string | null;
  };
  /** GPT-OSS's activation: `(up + 1) * gate * sigmoid(alpha * gate)` of bounded values; null for that of the model. */
  form: { alpha: number; limit: number } | null;
  /** True if router and experts have biases. */
  biased: boolean;
  /**
   * Order of the matrices of all experts in one tensor: `[outputs, inputs]`, gate before up; `[inputs, outputs]`, gate
   * and up alternating (GPT-OSS); or that of onnxruntime's operators.
   */
  layout: 'stacked' | 'transposed' | 'operator';
  names: {
    router: string;
    /** Matrices of all experts in one tensor. */
    gateUp: string;
    down: string;
    /** Matrices of one expert each, below its number. */
    single: string;
    singleGate: string;
    singleUp: string;
    singleDown: string;
  };
}

/** Describes the attention of a layer. */
export interface Attention {
  kind: 'attention';
  heads: number;
  kvHeads: number;
  headSize: number;
  /** Factor of the product of query and key. */
  scale: number;
  /** Bound of scores, as `logitCap`. */
  cap: number | null;
  /** Number of tokens that a token sees, including itself; null for all. */
  window: number | null;
  /** Null for layers without rotary positions. */
  rotary: Rotary | null;
  /** Tells which of its matrices have biases. */
  biases: { inputs: boolean; output: boolean };
  /** Norm of queries and keys: of each head, of all heads together, or none. */
  norm: 'head' | 'row' | null;
  /** True if the values of each head have a norm without weights. */
  valueNorm: boolean;
  /** True if keys before their norm are the values, too. */
  keysAsValues: boolean;
  /** Number of the earlier layer whose keys and values are used instead of own ones; null for own ones. */
  sharedFrom: number | null;
  /** True if the result is multiplied by a gate that is computed together with the queries. */
  gated: boolean;
  /** True if each head has a score for seeing nothing. */
  sinks: boolean;
  /** Makes queries of later positions longer: `1 + beta * ln(1 + floor(position / first))`. */
  growth: { beta: number; first: number } | null;
}

export const ACTIVATIONS = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_pytorch_tanh: 'gelu_tanh',
  gelu_new: 'gelu_tanh',
  relu: 'relu',
  relu2: 'relu2',
} as const;
export type Activation = (typeof ACTIVATIONS)[keyof typeof ACTIVATIONS];

/**
 * Names of weights in a checkpoint by what they are for, those of Llama. Names of a layer follow `layers.<number>.`;
 * null: the family has no such weight.
 */
export const NAMES = {
  embedding: 'embed_tokens',
  finalNorm: 'norm',
  mixerNorm: 'input_layernorm' as string | null,
  mixerEndNorm: null as string | null,
  query: 'self_attn.q_proj',
  key: 'self_attn.k_proj',
  value: 'self_attn.v_proj',
  /** Queries, keys and values in one matrix, instead of three. */
  joint: null as string | null,
  output: 'self_attn.o_proj',
  queryNorm: 'self_attn.q_norm',
  keyNorm: 'self_attn.k_norm',
  innerNorm: 'post_attention_layernorm' as string | null,
  innerEndNorm: null as string | null,
  gate: 'mlp.gate_proj',
  up: 'mlp.up_proj',
  /** Gate and up in one matrix, instead of two. */
  gateUp: null as string | null,
  down: 'mlp.down_proj',
};
export type Names = typeof NAMES;
