import { expect, test } from 'vitest';
import { maxConnections } from './max-connections.ts';

const limits = (files: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units     \n` +
  `Max processes             96365                96365                processes \n` +
  `Max open files            ${files.padEnd(20)} 1048576              files     \n`;

test.each<[string, string, number]>([
  ['many files', limits('20000'), 1024],
  ['no limit', limits('unlimited'), 1024],
  ['a limit of 1,024 files', limits('1024'), 960],
  ['a limit of 128 files', limits('128'), 64],
  ['a limit below the reserve', limits('40'), 8],
  ['another system', '', 1024],
])('%s', (_, text, connections) => {
  expect(maxConnections(text)).toBe(connections);
});

test('this process', () => {
  expect(maxConnections()).toBeGreaterThan(0);
});
