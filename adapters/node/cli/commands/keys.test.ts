import { describe, expect, it } from 'vitest';
import { hashSecret } from '../../../../lib/keys.ts';
import { EdgeKeys, type Wrangler } from './keys.ts';

/** Simulates `wrangler kv key put` and `list` with a map. */
function setUp() {
  const namespace = new Map<string, { value: string; metadata: unknown }>();
  const calls: string[] = [];
  const wrangler: Wrangler = async ([, , verb, ...rest]) => {
    calls.push([verb, ...rest.slice(verb === 'put' ? 4 : 0)].join(' '));
    if (verb === 'put') {
      const [key, value, , metadata] = rest;
      namespace.set(key!, { value: value!, metadata: JSON.parse(metadata!) });
      return '';
    }
    return JSON.stringify([...namespace].map(([name, { metadata }]) => ({ name, metadata })));
  };
  return { keys: new EdgeKeys(wrangler, { environment: 'staging' }), namespace, calls };
}

const shop = { name: 'shop', models: ['assay/*'], scopes: [], requestsPerMinute: 60, priority: 'batch' as const };

describe('EdgeKeys', () => {
  it('puts a key under its hash, in the namespace of the environment', async () => {
    const { keys, namespace, calls } = setUp();
    const sha256 = await hashSecret(await keys.create(shop));
    expect(JSON.parse(namespace.get(sha256)!.value)).toEqual({ ...shop, created: expect.any(String) });
    expect(calls).toEqual(['list --binding KEYS --env staging --remote', 'put --binding KEYS --env staging --remote']);
  });

  it('lists keys by their metadata, and passes over what is no key', async () => {
    const { keys, namespace } = setUp();
    await keys.create(shop);
    namespace.set('else', { value: 'x', metadata: undefined });
    expect(await keys.list()).toEqual([
      { ...shop, created: expect.any(String), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
  });

  it('marks a key as revoked, and makes another of the same name', async () => {
    const { keys, namespace } = setUp();
    const sha256 = await hashSecret(await keys.create(shop));
    await expect(keys.create(shop)).rejects.toThrow('There is a key named shop already');
    await keys.revoke('shop');
    expect(JSON.parse(namespace.get(sha256)!.value)).toMatchObject({ name: 'shop', revoked: true });
    expect(await keys.list()).toEqual([]);
    await expect(keys.revoke('shop')).rejects.toThrow('There is no key named shop');
    await keys.create(shop);
    expect(namespace.size).toBe(2);
  });
});
