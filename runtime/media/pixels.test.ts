import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fixture, readFixture } from '../../tests/fixture.ts';
import { cutTiles, decodeImage, imageSize } from './decode-image.ts';
import { readMediaFamily } from './families/read-family.ts';
import { tileBytes } from './pixel-plan.ts';

interface Case {
  parts: { type: string; file?: string }[];
  pixels: string[];
}

describe.each([
  'smolvlm',
  'qwen2-vl',
  'qwen2.5-vl',
  'qwen3-vl',
  'gemma4',
  'genai-qwen2-vl',
  'genai-qwen2.5-vl',
  'genai-gemma4',
])("%s: pixels have the bits of Python's processor", async (model) => {
  const family = await readMediaFamily(fixture(`media/${model}`), 1536);
  if (family?.kind !== 'image') throw new Error('not a family of images');
  const { cases } = JSON.parse(readFixture(`media/${model}/golden.json`)) as { cases: Case[] };
  const known = new Map(
    cases.flatMap(({ parts, pixels }) => parts.flatMap(({ file }) => file ?? []).map((file, i) => [file, pixels[i]!])),
  );

  it.each([...known])('%s', async (file, sha256) => {
    const bytes = readFileSync(fixture(`media/images/${file}`));
    const size = await imageSize(bytes);
    const image = await decodeImage(bytes);
    expect({ width: image.width, height: image.height }).toEqual(size);
    const { plan } = family.layout(size, 'high');
    const tiles = cutTiles(image, plan);
    const hash = createHash('sha256');
    const step = tileBytes(plan);
    for (let at = 0; at < tiles.length; at += step) {
      const [values] = family.inputs(tiles.subarray(at, at + step), plan.tile);
      hash.update(new Uint8Array(values!.data.buffer));
    }
    expect(hash.digest('hex')).toBe(sha256);
  });
});
