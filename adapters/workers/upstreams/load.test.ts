import { describe, expect, it } from 'vitest';
import { LOAD, Load, meanLoad, overloadedLast } from './load.ts';

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

describe('overloadedLast', () => {
  const upstream = (name: string, load: number, weight = 1) => ({ name, load, weight });
  const loadOf = ({ load }: { load: number }) => load;
  const order = (...upstreams: ReturnType<typeof upstream>[]) =>
    overloadedLast(upstreams, loadOf, meanLoad(upstreams, loadOf)).map(({ name }) => name);

  it.each([
    [
      'keeps the order where no box is over',
      [upstream('a', 120), upstream('b', 100), upstream('c', 100)],
      ['a', 'b', 'c'],
    ],
    [
      'passes over a box above 1.25 times the mean',
      [upstream('a', 140), upstream('b', 90), upstream('c', 90)],
      ['b', 'c', 'a'],
    ],
    ['weighs', [upstream('a', 140, 2), upstream('b', 70), upstream('c', 70)], ['a', 'b', 'c']],
    [
      'passes over none with little to do',
      [upstream('a', LOAD.idle - 1), upstream('b', 0), upstream('c', 0)],
      ['a', 'b', 'c'],
    ],
    [
      'keeps the order of several that are over',
      [upstream('a', 50), upstream('b', 60), upstream('c', 0), upstream('d', 0)],
      ['c', 'd', 'a', 'b'],
    ],
    ['never passes over the only one', [upstream('a', 1_000)], ['a']],
  ])('%s', (_, upstreams, expected) => {
    expect(order(...upstreams)).toEqual(expected);
  });
});
