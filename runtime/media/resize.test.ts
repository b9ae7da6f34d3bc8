import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fixture, readFixture } from '../../tests/fixture.ts';
import { decodeImage } from './decode-image.ts';
import type { Filter } from './pixel-plan.ts';
import { resize } from './resize.ts';

const wide = await decodeImage(readFileSync(fixture('media/images/wide.png')));
interface Case {
  filter: Filter;
  size: [width: number, height: number];
  sha256: string;
}
const { cases } = JSON.parse(readFixture('media/resized.json')) as { cases: Case[] };

describe('a resized image has the bytes of Pillow', () => {
  it.each(cases)('$filter to $size', ({ filter, size, sha256 }) => {
    const { data } = resize(wide, ...size, filter);
    expect(createHash('sha256').update(data).digest('hex')).toBe(sha256);
  });
});
