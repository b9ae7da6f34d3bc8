import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundle } from './workerd.ts';

describe('the bundle', () => {
  let script: string;
  beforeAll(async () => {
    script = await bundle();
  }, 60_000);

  // Cloudflare accepts 3 MiB; a bundle above this bound has probably pulled in a part of the engine.
  it('is at most 256 KiB compressed', () => {
    expect(gzipSync(script).byteLength).toBeLessThanOrEqual(256 * 1024);
  });

  it('needs nothing but the runtime', () => {
    const imported = [...script.matchAll(/\bfrom\s*["']([^"']+)["']/g)].map(([, name]) => name);
    expect(new Set(imported)).toEqual(new Set(['cloudflare:workers']));
  });
});
