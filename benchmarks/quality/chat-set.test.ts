import { describe, expect, it } from 'vitest';
import { readChatSet, says } from './chat-set.ts';

describe('says', () => {
  it.each([
    ['The driver is Ivo Marek.', [['Ivo Marek']], true],
    ['the driver is IVO MAREK', [['Ivo Marek']], true],
    ['The driver is Ivo.', [['Ivo Marek']], false],
    ['It is in Norway.', [['no', 'not']], false],
    ['No, they are not.', [['no', 'not']], true],
    ['He may not go swimming.', [['swim*']], true],
    ['It costs 1,200 euros.', [['1,200']], true],
    ['It costs 11,200 euros.', [['1,200']], false],
    ['Write to a.b@c.example.', [['a.b@c.example']], true],
    ['Write to axb@c.example.', [['a.b@c.example']], false],
    ['On Friday.', [['Friday'], ['10:30']], false],
    ['On Friday at 10:30.', [['Friday'], ['10:30']], true],
  ])('%j says %j: %s', (answer, wanted, right) => {
    expect(says(answer, wanted)).toBe(right);
  });
});

describe('readChatSet', () => {
  it('holds only words that its texts hold, or that answer yes or no or name what the text lacks', async () => {
    for (const { context, questions } of await readChatSet())
      for (const { ask, words } of questions)
        for (const either of words) {
          const free = either.some((word) => ['yes', 'no', 'not say'].includes(word));
          expect(free || either.some((word) => says(context, [[word]])), `${ask}: ${either}`).toBe(true);
        }
  });
});
