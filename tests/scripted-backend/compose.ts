import { Registry } from 'prom-client';
import type { Parts } from '../../adapters/node/compose.ts';
import { scriptedBackend } from './backend.ts';
import { scriptedHost } from './host.ts';
import type { Recorded, Script } from './script.ts';

/** Replaces the engine and the store, for tests of the server around them. */
export function composeScripted(script: Script = {}, recorded: Recorded[] = []): () => Promise<Parts> {
  return async () => ({
    backend: scriptedBackend(script, recorded),
    host: scriptedHost(script, recorded),
    registry: new Registry(),
    beginClose: () => (script.neverEnds ? new Promise(() => undefined) : Promise.resolve()),
    close: async () => {},
  });
}
