/** Describes the dimensions of a decoder like Llama's. Qwen2's has a bias for queries, keys and values. */
export interface Shape {
  layers: number;
  hidden: number;
  heads: number;
  kvHeads: number;
  headSize: number;
  intermediate: number;
  vocabulary: number;
  context: number;
  ropeTheta: number;
  /** Recurrent layers; absent if all layers have attention. */
  hybrid?: Hybrid;
}

/**
 * Describes the recurrent layers of a hybrid model. `conv`: a convolution, as in LFM2 (Amini et al. 2025). `linear`: a
 * convolution before a gated delta rule, as in Qwen3.5 (Yang et al. 2024); its attention layers have gates, too.
 */
export interface Hybrid {
  kind: 'conv' | 'linear';
  /** Indices of the layers that have attention. */
  attention: readonly number[];
  /** Width of the convolution, in tokens. */
  kernel: number;
  /** Number of key and value heads of the delta rule. */
  stateHeads: number;
  /** Size of each of these heads. */
  stateSize: number;
}

/**
 * Shapes of the measured models. Speed does not depend on the values of the weights, so a random model is as fast as
 * the real model of the same shape.
 */
export const SHAPES = {
  'qwen2.5-0.5b': {
    layers: 24,
    hidden: 896,
    heads: 14,
    kvHeads: 2,
    headSize: 64,
    intermediate: 4864,
    vocabulary: 151936,
    context: 8192,
    ropeTheta: 1e6,
  },
  'lfm2-350m': {
    layers: 16,
    hidden: 1024,
    heads: 16,
    kvHeads: 8,
    headSize: 64,
    intermediate: 4608,
    vocabulary: 65536,
    context: 8192,
    ropeTheta: 1e6,
    hybrid: { kind: 'conv', attention: [2, 5, 8, 10, 12, 14], kernel: 3, stateHeads: 0, stateSize: 0 },
  },
  'qwen3.5-0.8b': {
    layers: 24,
    hidden: 1024,
    heads: 8,
    kvHeads: 2,
    headSize: 256,
    intermediate: 3584,
    vocabulary: 248320,
    context: 8192,
    ropeTheta: 1e7,
    hybrid: { kind: 'linear', attention: [3, 7, 11, 15, 19, 23], kernel: 4, stateHeads: 16, stateSize: 128 },
  },
  /** Too small for useful figures; only shows within seconds that a benchmark runs. */
  tiny: {
    layers: 2,
    hidden: 128,
    heads: 2,
    kvHeads: 1,
    headSize: 64,
    intermediate: 256,
    vocabulary: 151936,
    context: 8192,
    ropeTheta: 1e6,
  },
  'tiny-conv': {
    layers: 2,
    hidden: 128,
    heads: 2,
    kvHeads: 1,
    headSize: 64,
    intermediate: 256,
    vocabulary: 65536,
    context: 8192,
    ropeTheta: 1e6,
    hybrid: { kind: 'conv', attention: [1], kernel: 3, stateHeads: 0, stateSize: 0 },
  },
  'tiny-linear': {
    layers: 2,
    hidden: 128,
    heads: 2,
    kvHeads: 1,
    headSize: 64,
    intermediate: 256,
    vocabulary: 65536,
    context: 8192,
    ropeTheta: 1e6,
    hybrid: { kind: 'linear', attention: [1], kernel: 4, stateHeads: 2, stateSize: 64 },
  },
} as const satisfies Record<string, Shape>;

export type ShapeName = keyof typeof SHAPES;
