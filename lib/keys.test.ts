import { describe, expect, test } from 'vitest';
import { hashSecret, listedKeys, mayUse, type StoredKey } from './keys.ts';

const key = (name: string, sha256: string): StoredKey => ({ name, sha256, models: ['*'], scopes: [] });

describe('listedKeys', () => {
  test('finds a key by the hash of its secret', async () => {
    const keys = listedKeys([key('one', await hashSecret('s1')), key('two', await hashSecret('s2'))]);
    await expect(keys.find(await hashSecret('s2'))).resolves.toMatchObject({ name: 'two' });
    await expect(keys.find(await hashSecret('s3'))).resolves.toBeNull();
  });

  test.each(['', 'ab', 'abcd', 'abd', 'ABC'])('%j is not abc', async (hash) => {
    await expect(listedKeys([key('one', 'abc')]).find(hash)).resolves.toBeNull();
  });
});

test('hashSecret is SHA-256 in hex (FIPS 180-2, appendix B.1)', async () => {
  await expect(hashSecret('abc')).resolves.toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

describe('mayUse', () => {
  test.each([
    ['*', 'assay/starter', true],
    ['assay/starter', 'assay/starter', true],
    ['assay/*', 'assay/starter', true],
    ['*/starter', 'assay/starter', true],
    ['a*y/s*r', 'assay/starter', true],
    ['**', 'assay/starter', true],
    ['assay*starter*', 'assay/starter', true],
    ['', 'assay/starter', false],
    ['assay', 'assay/starter', false],
    ['starter', 'assay/starter', false],
    ['assay/starter*x', 'assay/starter', false],
    ['ab*ba', 'aba', false],
    ['a*a*a', 'aa', false],
    ['assay.starter', 'assay/starter', false],
    ['Assay/*', 'assay/starter', false],
  ])('%s and %s: %s', (pattern, model, allowed) => {
    expect(mayUse({ name: 'k', models: [pattern], scopes: [] }, model)).toBe(allowed);
  });
});
