import { expect, test } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { Downloads } from './downloads.ts';
import { ModelRegistry } from './model-registry.ts';

const model = parseModelId('a/b');

test.each([
  ['downloading', 4, 'a/b is being downloaded now (25 %). Try to load it again when that has finished.'],
  ['verifying', 4, 'a/b is being verified now (25 %). Try to load it again when that has finished.'],
  ['compiling', null, 'a/b is being compiled now. Try to load it again when that has finished.'],
] as const)('says what a busy model is doing: %s', async (stage, total, message) => {
  const registry = new ModelRegistry();
  const downloads = new Downloads({
    registry,
    unfollowedMs: 1000,
    download: (_model, _options, report) => {
      report({ type: 'progress', stage, bytes: 1, total });
      return new Promise(() => undefined);
    },
  });
  await downloads.follow(model, { allowDownload: true }).next();
  expect(() => registry.refuseDuringFileWork(model, 'load')).toThrow(message);
});
