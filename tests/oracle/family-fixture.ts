import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelFixture } from '../fixture.ts';
import { formulaSafetensors, type WeightShapes } from './formula-weights.ts';

/**
 * Writes a tiny random model of a family (`tests/fixtures/families/safetensors`) to a folder.
 *
 * @param name `lfm2`, or `gemma3:256` with one head of attention of 256 elements; all weights then come from a formula
 * @param context number of tokens for which the model has positions
 */
export function writeFamily(folder: string, name: string, context: number): void {
  const [family = '', headSize] = name.split(':');
  const source = modelFixture(`../families/safetensors/${family}`);
  const config = readFileSync(join(source, 'config.json'), 'utf8');
  const weights = readFileSync(join(source, 'model.safetensors'));
  const size = Number(headSize);
  const heads = { head_dim: size, query_pre_attn_scalar: size, num_attention_heads: 1, num_key_value_heads: 1 };
  const given: Record<string, unknown> = { max_position_embeddings: context, ...(headSize ? heads : {}) };
  const changed = JSON.parse(config, (key, value) => given[key] ?? value);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(changed));
  const written = headSize ? formulaSafetensors(withOneHead(weights, JSON.parse(config), size)) : weights;
  writeFileSync(join(folder, 'model.safetensors'), written);
}

/** Returns the weights of a safetensors file as they are with one head of this size. */
function withOneHead(file: Buffer, config: Record<string, number>, headSize: number): WeightShapes {
  const { head_dim: before = 1, num_attention_heads: heads = 1, num_key_value_heads: kvHeads = 1 } = config;
  /** Number of heads whose elements each kind of weight has, and in which dimension. */
  const kinds = [
    { part: /self_attn\.[qk]_(layer)?norm/, count: 1, dim: 0 },
    { part: /self_attn\.[kv]_proj/, count: kvHeads, dim: 0 },
    { part: /self_attn\.q_proj/, count: heads, dim: 0 },
    { part: /self_attn\.o(ut)?_proj\.weight/, count: heads, dim: 1 },
  ];
  const header = file.subarray(8, 8 + Number(file.readBigUInt64LE(0))).toString();
  const { __metadata__: _, ...stored }: Record<string, { shape: number[] }> = JSON.parse(header);
  return Object.entries(stored)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { shape }]) => {
      const kind = kinds.find(({ part }) => part.test(name));
      const times = kind ? headSize / before / kind.count : 1;
      return [name, shape.map((size, dim) => (dim === kind?.dim ? size * times : size))];
    });
}
