import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { VERSION } from './version.ts';

test('the package has the version of the HTTP API', () => {
  expect(manifest.version).toBe(VERSION);
});
