import { expect, test } from 'vitest';
import { FairShares } from './fair-shares.ts';

/** Returns the callers of some events in the order in which they are served: the one that used least first. */
function inLine(...events: readonly (readonly ['add' | 'remove' | 'charge' | 'wait', string, number?])[]): string[] {
  const shares = new FairShares();
  let now = 0;
  for (const [event, caller, amount = 0] of events) {
    if (event === 'add') shares.add(caller, now);
    else if (event === 'remove') shares.remove(caller, now);
    else if (event === 'wait') now += amount;
    else shares.charge(caller, amount);
  }
  const callers = [...new Set(events.flatMap(([event, caller]) => (event === 'wait' ? [] : [caller])))];
  return callers.sort((a, b) => shares.used(a) - shares.used(b));
}

const add = (caller: string) => ['add', caller] as const;
const remove = (caller: string) => ['remove', caller] as const;
const wait = (ms: number) => ['wait', '', ms] as const;
const charge = (caller: string, amount: number) => ['charge', caller, amount] as const;

test.each([
  ['a caller that comes is before one that used much', [add('old'), charge('old', 5_000), add('new')], ['new', 'old']],
  [
    'it stays so for a short request only',
    [add('old'), charge('old', 5_000), add('new'), charge('new', 300)],
    ['old', 'new'],
  ],
  [
    'a caller with steady short requests does not wait until one that begins much work has got as much',
    [add('steady'), charge('steady', 5_000), remove('steady'), add('new'), charge('new', 300), add('steady')],
    ['steady', 'new'],
  ],
  [
    'a caller that comes again and again gets no more than its share',
    [add('old'), charge('old', 5_000), add('new'), charge('new', 1_000), remove('new'), add('new')],
    ['old', 'new'],
  ],
  [
    'also after a break in which the others could not get as much',
    [add('old'), charge('old', 5_000), add('new'), charge('new', 1_000), remove('new'), wait(200), add('new')],
    ['old', 'new'],
  ],
  [
    'one whose requests leave more time than they take stays before one that comes',
    [
      ...Array.from({ length: 20 }, () => [add('steady'), charge('steady', 25), remove('steady'), wait(175)]).flat(),
    ].concat([add('new'), charge('new', 1), add('steady')]),
    ['steady', 'new'],
  ],
])('%s', (_, events, expected) => {
  expect(inLine(...events)).toEqual(expected);
});

test('a caller is remembered for a minute after its last job, and others are forgotten', () => {
  const shares = new FairShares();
  shares.add('a', 0);
  shares.remove('a', 1_000);
  expect([60_999, 61_000].map((now) => shares.callers(now))).toEqual([1, 0]);
  shares.charge('a', 5);
  shares.add('a', 0);
  shares.remove('a', 0);
  shares.add('b', 0);
  shares.remove('b', 60_000);
  expect(shares.used('a')).toBe(0);
});
