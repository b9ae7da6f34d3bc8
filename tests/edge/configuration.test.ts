import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorCode, headers } from './calls.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';
import { bundle, type RunningWorkers, runWorkers } from './workerd.ts';

const upstream = { name: 'npu-1', url: 'https://npu-1.example.com', key_secret: 'BOX_KEY', models: ['assay/starter'] };

describe('an edge that is not configured', () => {
  let workers: RunningWorkers;
  let good: TestUpstream;
  const names = ['no-boxes', 'bad-url', 'bad-second-list', 'no-key', 'one-key'] as const;

  beforeAll(async () => {
    const script = await bundle();
    good = await startUpstream('npu-2');
    const bindings: Record<(typeof names)[number], Record<string, object | string>> = {
      'no-boxes': {},
      'bad-url': { BOXES: [{ ...upstream, url: 'http://npu-1.example.com' }], BOX_KEY: 'k' },
      'bad-second-list': { BOXES: [upstream], BOXES_2: [{ ...upstream, weight: 0 }], BOX_KEY: 'k' },
      'no-key': { BOXES: [upstream] },
      'one-key': {
        BOXES: [upstream, { ...upstream, name: 'npu-2', url: good.url, key_secret: 'OTHER_KEY' }],
        OTHER_KEY: 'k',
      },
    };
    const durableObjects = {
      QUOTA: { className: 'QuotaObject', useSQLite: true as const },
      FLEET: { className: 'FleetObject', useSQLite: true as const },
    };
    workers = await runWorkers(
      names.map((name) => ({ name, script, bindings: bindings[name], kvNamespaces: { KEYS: 'keys' }, durableObjects })),
    );
  }, 60_000);
  afterAll(async () => {
    await workers?.close();
    await good?.kill();
  });

  const call = (name: (typeof names)[number], path: string) =>
    fetch(`${workers.urls[names.indexOf(name)]}${path}`, { headers });

  it.each([
    ['no-boxes', /BOXES: /],
    ['bad-url', /BOXES at 0\.url: A box needs an https:\/\/ address/],
    ['bad-second-list', /BOXES_2 at 0\.weight: /],
    ['no-key', /Box npu-1 is not used: there is no secret BOX_KEY\. Run: wrangler secret put BOX_KEY/],
  ] as const)('%s: the caller learns nothing of it, the log says what to mend', async (name, said) => {
    const response = await call(name, '/v1/models');
    expect([response.status, await errorCode(response)]).toEqual([500, 'internal_error']);
    await expect.poll(() => workers.log.join('\n')).toMatch(said);
  });

  it('goes on without a box that has no key', async () => {
    const health = await call('one-key', '/health');
    expect([health.status, await health.json()]).toMatchObject([200, { status: 'ok', state: 'loaded', boxes: 1 }]);
  });
});
