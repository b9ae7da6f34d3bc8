import type { Shape } from '../models/shapes.ts';

/** Returns the number of weights in the layers' matrices; each takes one multiply-add per token. */
export function layerWeights({ layers, hidden, heads, kvHeads, headSize, intermediate }: Shape): number {
  const attention = hidden * headSize * (2 * heads + 2 * kvHeads);
  return layers * (attention + 3 * hidden * intermediate);
}

/**
 * Returns the number of multiply-adds that reading a prompt needs at least: for each token the layers and the attention
 * to all earlier tokens, and once the head.
 */
export function prefillMultiplyAdds(shape: Shape, tokens: number): number {
  const { layers, hidden, heads, headSize, vocabulary } = shape;
  const attention = layers * heads * headSize * tokens * (tokens + 1);
  return layerWeights(shape) * tokens + attention + hidden * vocabulary;
}

/**
 * Returns the number of bytes that decoding one token must read at least: all weights, including those of the head, and
 * all keys and values in 32 bits.
 */
export function decodeBytes(shape: Shape, context: number, weights: 'int8' | 'int4'): number {
  const { layers, hidden, kvHeads, headSize, vocabulary } = shape;
  // 4-bit blocks of 128 have a scale of 32 bits.
  const perWeight = weights === 'int8' ? 1 : 1 / 2 + 4 / 128;
  return (layerWeights(shape) + hidden * vocabulary) * perWeight + layers * 2 * kvHeads * headSize * 4 * context;
}
