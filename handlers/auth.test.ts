import { expect, test } from 'vitest';
import { hashSecret, type KeyStore, listedKeys } from '../lib/keys.ts';
import { scriptedBackend } from '../tests/scripted-backend/backend.ts';
import { scriptedHost } from '../tests/scripted-backend/host.ts';
import { createApp } from './app.ts';

const known = listedKeys([{ name: 'one', sha256: await hashSecret('s'), models: ['*'], scopes: [] }]);
const app = (keys: KeyStore) =>
  createApp({ backend: scriptedBackend({}), host: scriptedHost({}), keys, keyForModels: true });

test.each<[string, KeyStore, string, string]>([
  ['an unknown key', known, 'x', 'This API key is not known here. Check it, or ask whoever runs this server.'],
  [
    'an unknown key, where the host says how to make one',
    { ...known, command: 'tool keys add <name>' },
    'x',
    'This API key is not known here. Check it, or make a new one with "tool keys add <name>".',
  ],
  [
    'a key without the scope',
    { ...known, command: 'tool keys add <name>' },
    's',
    'The key one lacks the admin scope. To get one that has it, make a new one with "tool keys add <name> --admin".',
  ],
])('%s', async (_, keys, secret, message) => {
  const response = await app(keys).request('/unload', {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
  });
  expect((await response.json()).error.message).toBe(message);
});
