import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiKeyOf, type KeyFlags } from './api-key.ts';
import { UsageError } from './usage-error.ts';

const folder = mkdtempSync(join(tmpdir(), 'assay-key-'));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const key = file('key', 'from-file\n');

describe('the key', () => {
  test.each<[string, KeyFlags, Record<string, string>, string | undefined]>([
    ['none', {}, {}, undefined],
    ['of the flag', { apiKey: 'f' }, { ASSAY_API_KEY: 'e', ASSAY_API_KEY_FILE: key }, 'f'],
    ['of the file', { apiKeyFile: key }, { ASSAY_API_KEY: 'e' }, 'from-file'],
    ['of the variable', {}, { ASSAY_API_KEY: 'e' }, 'e'],
    ['of the variable that names a file', {}, { ASSAY_API_KEY_FILE: key }, 'from-file'],
    ['empty variables', {}, { ASSAY_API_KEY: '', ASSAY_API_KEY_FILE: '' }, undefined],
  ])('%s', (_, flags, env, expected) => {
    expect(apiKeyOf(flags, env)).toBe(expected);
  });

  test.each<[string, KeyFlags, Record<string, string>, RegExp]>([
    ['two flags', { apiKey: 'f', apiKeyFile: key }, {}, /--api-key and --api-key-file both/],
    ['two variables', {}, { ASSAY_API_KEY: 'e', ASSAY_API_KEY_FILE: key }, /ASSAY_API_KEY and ASSAY_API_KEY_FILE both/],
    ['a space', { apiKey: 'a b' }, {}, /has a space or a character that is not ASCII/],
    ['a line break', {}, { ASSAY_API_KEY: 'a\nb' }, /has a space or a character that is not ASCII/],
    ['other letters', { apiKeyFile: file('other', 'ключ') }, {}, /has a space or a character that is not ASCII/],
    ['no file', { apiKeyFile: join(folder, 'none') }, {}, /cannot be read \(ENOENT\)/],
    ['a folder', { apiKeyFile: folder }, {}, /cannot be read|does not hold one key/],
    ['an empty file', { apiKeyFile: file('empty', '\n') }, {}, /does not hold one key/],
    ['two lines', { apiKeyFile: file('two', 'a\nb\n') }, {}, /does not hold one key/],
    ['a large file', { apiKeyFile: file('large', 'a'.repeat(5000)) }, {}, /does not hold one key/],
  ])('%s: refused', (_, flags, env, message) => {
    expect(() => apiKeyOf(flags, env)).toThrow(message);
    expect(() => apiKeyOf(flags, env)).toThrow(UsageError);
  });
});
