import { expect, test } from 'vitest';
import { addressOf, maxConnections } from './connections.ts';

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

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['::1', '0:0:0:0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['2001:db8:1:2::', '2001:db8:1:2'],
])('connections of %s count for %s', (remoteAddress, address) => {
  expect(addressOf({ remoteAddress })).toBe(address);
});
