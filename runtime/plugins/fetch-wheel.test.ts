import { describe, expect, test } from 'vitest';
import { findWheel, type IndexAccess } from './fetch-wheel.ts';

const OWNER = { plugin: 'webgpu', package: 'onnxruntime-webgpu' };
const WHEEL = { file: 'onnxruntime_webgpu-1.0-py3-none-any.whl', bytes: 1, sha256: '' };

describe('findWheel', () => {
  const access = (more: Partial<IndexAccess>): IndexAccess => ({
    index: 'https://registry.test/simple',
    signal: new AbortController().signal,
    fetch: () => Promise.reject(new TypeError('fetch failed')),
    ...more,
  });

  test('reports a registry that does not answer', async () => {
    await expect(findWheel(OWNER, WHEEL, access({}))).rejects.toMatchObject({ code: 'hub_unreachable' });
  });

  test('throws the reason of an abort, not an unreachable registry', async () => {
    const reason = new Error('the caller has left');
    const stopped = access({ signal: AbortSignal.abort(reason) });
    await expect(findWheel(OWNER, WHEEL, stopped)).rejects.toBe(reason);
  });
});
