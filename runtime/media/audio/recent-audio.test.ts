import { expect, it } from 'vitest';
import { RecentAudio } from './recent-audio.ts';

const minutes = (count: number) => new Float32Array(count * 60 * 16_000);

it('keeps 64 MiB of the recordings used last', () => {
  const recent = new RecentAudio();
  for (const name of ['a', 'b', 'c']) recent.keep(name, minutes(5));
  recent.keep('a', minutes(5));
  recent.keep('d', minutes(5));
  expect(['a', 'b', 'c', 'd'].filter((name) => recent.get(name))).toEqual(['a', 'c', 'd']);
  recent.keep('e', minutes(10));
  expect(['a', 'c', 'd', 'e'].filter((name) => recent.get(name))).toEqual(['d', 'e']);
});
