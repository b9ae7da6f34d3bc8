import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { decodeImage, imageSize } from './decode-image.ts';
import { readMediaFamily } from './families/read-family.ts';
import { cutTiles } from './tiles.ts';

const fixture = (path: string) => fileURLToPath(new URL(`../../tests/fixtures/media/${path}`, import.meta.url));
const family = (await readMediaFamily(fixture('smolvlm')))!;
if (family.kind !== 'image') throw new Error('not a family of images');
interface Case {
  parts: { type: string; file?: string }[];
  pixels: string[];
}
const { cases } = JSON.parse(readFileSync(fixture('smolvlm/golden.json'), 'utf8')) as { cases: Case[] };
const known = new Map(
  cases.flatMap(({ parts, pixels }) => parts.flatMap(({ file }) => file ?? []).map((file, i) => [file, pixels[i]!])),
);

describe("pixels have the bits of Python's processor", () => {
  it.each([...known])('%s', async (file, sha256) => {
    const bytes = readFileSync(fixture(`images/${file}`));
    const size = await imageSize(bytes);
    const image = await decodeImage(bytes);
    expect({ width: image.width, height: image.height }).toEqual(size);
    const { plan } = family.layout(size, 'high');
    const tiles = cutTiles(image, plan);
    const hash = createHash('sha256');
    const tile = plan.side ** 2 * 3;
    for (let at = 0; at < tiles.length; at += tile) {
      const [values] = family.inputs(tiles.subarray(at, at + tile), plan.side);
      hash.update(new Uint8Array(values!.data.buffer));
    }
    expect(hash.digest('hex')).toBe(sha256);
  });
});
