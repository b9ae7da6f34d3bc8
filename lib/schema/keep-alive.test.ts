import { expect, it } from 'vitest';
import { keepAliveMs } from './keep-alive.ts';

it.each([
  [300, 300_000],
  [0, 0],
  [-1, Number.POSITIVE_INFINITY],
  ['-1', Number.POSITIVE_INFINITY],
  ['0', 0],
  ['5m', 300_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['250ms', 250],
  ['-1m', Number.POSITIVE_INFINITY],
  ['forever', undefined],
  ['5', 5_000],
  ['5 m', undefined],
  ['1s'.repeat(1_000_000), undefined],
  ['', undefined],
  [null, undefined],
  [Number.NaN, undefined],
])('reads keep_alive (%#)', (sent, ms) => {
  expect(keepAliveMs(sent)).toBe(ms);
});
