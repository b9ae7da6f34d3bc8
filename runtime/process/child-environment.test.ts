import { expect, it } from 'vitest';
import { childEnvironment } from './child-environment.ts';

it.each([
  ['HF_TOKEN', false],
  ['OPENAI_API_KEY', false],
  ['ASSAY_API_KEY', false],
  ['OTEL_EXPORTER_OTLP_HEADERS', false],
  ['PIP_INDEX_URL', false],
  ['HTTPS_PROXY', false],
  ['DATABASE_URL', false],
  ['GH_PAT', false],
  ['STRIPE_SK', false],
  ['SSH_AUTH_SOCK', false],
  ['NOTIFY_SOCKET', false],
  ['NODE_OPTIONS', false],
  ['CUDA_TOKEN', false],
  ['MY_PATH', false],
  ['PATH', true],
  ['Path', true],
  ['SystemRoot', true],
  ['LC_ALL', true],
  ['LD_LIBRARY_PATH', true],
  ['CUDA_VISIBLE_DEVICES', true],
  ['OMP_NUM_THREADS', true],
])('of the variable %s it passes on: %s', (name, kept) => {
  expect(childEnvironment({ [name]: 'value' })).toEqual(kept ? { [name]: 'value' } : {});
});
