/** Describes a decoder of the Llama kind; Qwen2's adds a bias to queries, keys and values. */
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
}

/** Speed does not depend on the weights' values, so a model of a real shape with random weights measures as well. */
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
  /** Measures nothing: shows in seconds that a benchmark runs. */
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
} as const satisfies Record<string, Shape>;

export type ShapeName = keyof typeof SHAPES;
