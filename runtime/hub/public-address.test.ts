import { describe, expect, it } from 'vitest';
import { addressesOf, fetchPublic, isPublicAddress } from './public-address.ts';

describe('isPublicAddress', () => {
  it.each<[string, boolean]>([
    ['93.184.215.14', true],
    ['2606:2800:21f:cb07::1', true],
    ['127.0.0.1', false],
    ['10.1.2.3', false],
    ['172.16.0.1', false],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['0.0.0.0', false],
    ['255.255.255.255', false],
    ['224.0.0.1', false],
    ['::1', false],
    ['::', false],
    ['fe80::1', false],
    ['fd00::1', false],
    ['::ffff:127.0.0.1', false],
    ['::ffff:93.184.215.14', true],
    ['64:ff9b::7f00:1', false],
    ['localhost', false],
    ['', false],
  ])('%s: %s', (address, expected) => {
    expect(isPublicAddress(address)).toBe(expected);
  });
});

it.each([
  ['127.0.0.1', ['127.0.0.1']],
  ['[::1]', ['::1']],
])('addressesOf %s takes it as it is', async (host, expected) => {
  expect(await addressesOf(host)).toEqual(expected);
});

it('fetchPublic refuses a name that resolves to a private address, before it connects', async () => {
  await expect(fetchPublic('http://localhost:8080/')).rejects.toMatchObject({
    cause: { code: 'hub_unreachable', message: expect.stringContaining('localhost, which is a private address') },
  });
});
