import { describe, expect, it } from 'vitest';
import { LOAD, Load, meanLoad, passOver } from './load.ts';

describe('Load', () => {
  it('counts a running request as one, however long it runs', () => {
    const load = new Load(0);
    load.running++;
    expect(load.value(0)).toBe(1);
    expect(load.value(1e9)).toBe(1);
  });

  it('forgets an ended request slowly', () => {
    const load = new Load(0);
    load.end(0);
    expect(load.value(0)).toBe(1);
    expect(load.value(LOAD.memoryMs)).toBeCloseTo(1 / Math.E, 10);
    load.end(LOAD.memoryMs, 2);
    expect(load.value(2 * LOAD.memoryMs)).toBeCloseTo(1 / Math.E ** 2 + 2 / Math.E, 10);
  });
});

describe('passOver', () => {
  const box = (name: string, load: number, weight = 1) => ({ name, load, weight });
  const loadOf = ({ load }: { load: number }) => load;
  const order = (...boxes: ReturnType<typeof box>[]) =>
    passOver(boxes, loadOf, meanLoad(boxes, loadOf)).map(({ name }) => name);

  it.each([
    ['keeps the order where no box is over', [box('a', 120), box('b', 100), box('c', 100)], ['a', 'b', 'c']],
    ['passes over a box above 1.25 times the mean', [box('a', 140), box('b', 90), box('c', 90)], ['b', 'c', 'a']],
    ['weighs', [box('a', 140, 2), box('b', 70), box('c', 70)], ['a', 'b', 'c']],
    ['passes over none with little to do', [box('a', LOAD.idle - 1), box('b', 0), box('c', 0)], ['a', 'b', 'c']],
    [
      'keeps the order of several that are over',
      [box('a', 50), box('b', 60), box('c', 0), box('d', 0)],
      ['c', 'd', 'a', 'b'],
    ],
    ['never passes over the only one', [box('a', 1_000)], ['a']],
  ])('%s', (_, boxes, expected) => {
    expect(order(...boxes)).toEqual(expected);
  });
});
