import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { QwenVlConfig, qwenVl } from './qwen-vl.ts';

/** Preprocessor configurations that are published with Qwen2-VL and Qwen3-VL. */
const QWEN2 = { patch_size: 14, merge_size: 2, temporal_patch_size: 2, min_pixels: 3136, max_pixels: 12_845_056 };
const QWEN3 = { patch_size: 16, merge_size: 2, size: { shortest_edge: 65_536, longest_edge: 16_777_216 } };

const familyOf = (preprocessor: object, maxPromptLen: number) =>
  qwenVl(v.parse(QwenVlConfig, { config: { image_token_id: 5 }, preprocessor }), { maxPromptLen });

describe('sizes and tokens', () => {
  // If the prompt sets no limit, the sizes are those of `smart_resize` in transformers 4.57.
  it.each([
    { preprocessor: QWEN2, prompt: 1 << 20, width: 640, height: 427, detail: 'high', resized: '644x420', tokens: 345 },
    {
      preprocessor: QWEN2,
      prompt: 1 << 20,
      width: 8000,
      height: 6000,
      detail: 'high',
      resized: '1148x840',
      tokens: 1230,
    },
    { preprocessor: QWEN2, prompt: 1 << 20, width: 10, height: 10, detail: 'high', resized: '56x56', tokens: 4 },
    { preprocessor: QWEN2, prompt: 1 << 20, width: 42, height: 70, detail: 'high', resized: '56x56', tokens: 4 },
    { preprocessor: QWEN2, prompt: 4096, width: 6000, height: 4000, detail: 'high', resized: '1204x812', tokens: 1247 },
    { preprocessor: QWEN2, prompt: 2048, width: 8000, height: 6000, detail: 'high', resized: '1008x756', tokens: 972 },
    { preprocessor: QWEN2, prompt: 4096, width: 8000, height: 6000, detail: 'low', resized: '504x364', tokens: 234 },
    { preprocessor: QWEN3, prompt: 1 << 20, width: 100, height: 100, detail: 'high', resized: '256x256', tokens: 64 },
    { preprocessor: QWEN3, prompt: 4096, width: 8000, height: 6000, detail: 'high', resized: '1312x960', tokens: 1230 },
  ] as const)('$width × $height, $detail, in a prompt of $prompt: $resized', (one) => {
    const { plan, tokens, columns } = familyOf(one.preprocessor, one.prompt).layout(one, one.detail);
    expect([`${plan.tile.width}x${plan.tile.height}`, tokens]).toEqual([one.resized, one.tokens]);
    expect(tokens % columns!).toBe(0);
  });
});
