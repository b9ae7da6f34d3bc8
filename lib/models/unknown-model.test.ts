import { expect, test } from 'vitest';
import { unknownModel } from './unknown-model.ts';

const many = Array.from({ length: 9 }, (_, i) => `org/m${i}x${i}`);

test.each([
  ['gpt-4o', ['assay/starter'], 'There is no such model here. Loaded: assay/starter. GET /v1/models lists all.'],
  [
    'assay/startr',
    ['assay/starter'],
    'There is no such model here. Did you mean assay/starter? Loaded: assay/starter. GET /v1/models lists all.',
  ],
  [
    'starter',
    ['assay/starter'],
    'There is no such model here. Did you mean assay/starter? Loaded: assay/starter. GET /v1/models lists all.',
  ],
  ['gpt-4o', [], 'There is no such model here. No model is loaded. GET /v1/models lists all.'],
  [
    'x'.repeat(10_000),
    many,
    `There is no such model here. Loaded: ${many.slice(0, 8).join(', ')} and others. GET /v1/models lists all.`,
  ],
])('%.20s with %j', (wanted, served, message) => {
  const error = unknownModel(wanted, { served, known: served });
  expect(error).toMatchObject({ code: 'model_not_found', param: 'model', message });
});
