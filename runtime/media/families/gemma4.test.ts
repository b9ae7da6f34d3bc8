import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { Gemma4Config, gemma4 } from './gemma4.ts';

/** Preprocessor configuration that is published with Gemma 4 E2B. */
const PUBLISHED = { patch_size: 16, pooling_kernel_size: 3, max_soft_tokens: 280 };

const familyOf = (preprocessor: object, text_config: object = {}) =>
  gemma4(v.parse(Gemma4Config, { config: { image_token_id: 5, text_config }, preprocessor }));

describe('sizes and tokens', () => {
  // The sizes are those of `get_aspect_ratio_preserving_size` in transformers 5.24.
  it.each([
    [640, 427, 280, '960x624', 260],
    [6000, 4000, 280, '960x624', 260],
    [10, 10, 280, '768x768', 256],
    [20_000, 20, 280, '13440x48', 280],
    [20, 20_000, 280, '48x13440', 280],
    [3088, 2056, 1120, '1968x1296', 1107],
  ] as const)('%d × %d with %d tokens at most: %s', (width, height, max_soft_tokens, resized, tokens) => {
    const layout = familyOf({ ...PUBLISHED, max_soft_tokens }).layout({ width, height }, 'high');
    expect([`${layout.plan.tile.width}x${layout.plan.tile.height}`, layout.tokens]).toEqual([resized, tokens]);
    expect(layout.text.split('<|image|>').length - 1).toBe(tokens);
  });

  it('detail low is the smallest limit of the processor', () => {
    const { plan, tokens } = familyOf(PUBLISHED).layout({ width: 6000, height: 4000 }, 'low');
    expect([plan.tile, tokens]).toEqual([{ width: 480, height: 288 }, 60]);
  });
});

it('inputs are padded to the limit, and the padding has no position', () => {
  const tile = { width: 96, height: 48 };
  const [values, positions] = familyOf(PUBLISHED).inputs(new Uint8Array(96 * 48 * 3).fill(255), tile);
  expect([values?.dims, positions?.dims]).toEqual([
    [1, 2520, 768],
    [1, 2520, 2],
  ]);
  const patches = 6 * 3;
  expect([values?.data[patches * 768 - 1], values?.data[patches * 768]]).toEqual([1, 0]);
  expect([...(positions?.data.slice(2 * patches - 2, 2 * patches + 2) ?? [])]).toEqual([5n, 2n, -1n, -1n]);
});

it('a padding token other than the one that the engine feeds is refused', () => {
  expect(() => familyOf(PUBLISHED, { pad_token_id: 1 })).toThrow();
});
