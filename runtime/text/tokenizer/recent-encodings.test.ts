import { expect, it } from 'vitest';
import { RecentEncodings } from './recent-encodings.ts';

const text = (letter: string) => letter.repeat(600);

it('encodes a long text once, apart for each kind, and forgets the oldest', () => {
  const made: string[] = [];
  const recent = new RecentEncodings(2_000);
  const get = (kind: string, what: string) =>
    recent.get(kind, what, () => {
      made.push(kind + what[0]);
      return [what.length];
    });
  for (const [kind, letter] of ['ua', 'ua', 'ub', 'ca', 'ua', 'uc', 'ub'])
    expect(get(kind!, text(letter!))).toEqual([600]);
  // Three texts fit in the cache: 'ub' was the least recently used when 'uc' was added.
  expect(made).toEqual(['ua', 'ub', 'ca', 'uc', 'ub']);
});

it('does not keep short or huge texts', () => {
  let made = 0;
  const recent = new RecentEncodings(1_000);
  for (const what of ['short', 'short', text('x').repeat(2), text('x').repeat(2)])
    recent.get('u', what, () => [++made]);
  expect(made).toBe(4);
});
