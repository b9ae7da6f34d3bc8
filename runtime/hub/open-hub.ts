import { readFile } from 'node:fs/promises';
import { systemClock } from '../../lib/clock.ts';
import type { HubEnvironment } from '../store/environment.ts';
import type { HubAccess } from './hub-access.ts';
import { addressesOf, fetchPublic } from './public-address.ts';

/** Creates access to the hub that the environment names, with the real network and clock. */
export async function openHub({ endpoint, token, tokenFile, offline }: HubEnvironment): Promise<HubAccess> {
  return {
    fetch: (input, init) => fetch(input, init),
    fetchPublic,
    addressesOf,
    clock: systemClock,
    random: Math.random,
    endpoint,
    token: token ?? (await savedToken(tokenFile)),
    offline,
  };
}

/** Reads the token that `hf auth login` saved; null if there is none. */
async function savedToken(file: string): Promise<string | null> {
  return (await readFile(file, 'utf8').catch(() => '')).trim() || null;
}
