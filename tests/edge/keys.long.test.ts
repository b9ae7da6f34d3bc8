import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EdgeKeys, type Wrangler } from '../../adapters/node/cli/commands/keys.ts';
import { hashSecret } from '../../lib/keys.ts';
import { OFFLINE, WRANGLER } from './workerd.ts';

const wrangler: Wrangler = async (args) =>
  (await promisify(execFile)(process.execPath, [WRANGLER, ...args], { env: { ...process.env, ...OFFLINE } })).stdout;

describe('assay keys --edge, with wrangler and a namespace on this machine', () => {
  let folder: string;
  let keys: EdgeKeys;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'assay-keys-'));
    keys = new EdgeKeys(wrangler, { environment: '', where: ['--local', '--persist-to', folder] });
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('makes a key as the edge reads it', async () => {
    const secret = await keys.create({ name: 'shop', models: ['assay/*'], scopes: [], requestsPerMinute: 60 });
    const place = ['--binding', 'KEYS', '--env', '', '--local', '--persist-to', folder];
    const stored = await wrangler(['kv', 'key', 'get', await hashSecret(secret), '--text', ...place]);
    expect(JSON.parse(stored)).toMatchObject({ name: 'shop', models: ['assay/*'], requestsPerMinute: 60 });
  }, 120_000);
});
