import { afterAll, beforeAll, describe } from 'vitest';
import { ForwardingBackend } from '../../adapters/workers/forward/backend.ts';
import { Fleet } from '../../adapters/workers/upstreams/fleet.ts';
import type { Upstream } from '../../adapters/workers/upstreams/upstream.ts';
import { keywordBackend } from '../../examples/keyword-backend.ts';
import { createApp } from '../../handlers/app.ts';
import { systemClock } from '../../lib/clock.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { type Machine, MODEL, startMachine } from '../engine-process/machine.ts';
import { DEFAULT_MODEL, scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import { backendContract } from './contract.ts';

describe('the engine process', () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await startMachine('optimum/qwen3');
  });
  afterAll(() => machine.close());
  backendContract(() => ({ backend: machine.backend, model: MODEL, chats: true }));
});

describe('the edge', () => {
  describe('with an upstream that answers', () => {
    backendContract(() => ({ backend: edge({ broken: 0 }), model: DEFAULT_MODEL, chats: true }));
  });
  describe('with a first upstream that fails', () => {
    backendContract(() => ({ backend: edge({ broken: 1 }), model: DEFAULT_MODEL, chats: true }));
  });
});

describe('the example', () => {
  backendContract(() => ({ backend: keywordBackend, model: 'example/keywords', chats: false }));
});

/** Creates the edge's backend over the real handlers; the first `broken` forwarded requests fail to connect. */
function edge({ broken }: { broken: number }): ForwardingBackend {
  const app = hashSecret('secret').then((sha256) =>
    createApp({
      backend: scriptedBackend({}),
      host: scriptedHost({}),
      keys: listedKeys([{ name: 'edge', sha256, models: ['*'], scopes: [] }]),
    }),
  );
  let failures = broken;
  const fetch: typeof globalThis.fetch = async (url, init) => {
    if (failures-- > 0) throw new TypeError('connection refused');
    return (await app).fetch(new Request(url as string, init));
  };
  const upstreams = ['a', 'b'].map(
    (name): Upstream => ({ name, url: `http://${name}.test`, key_secret: 'KEY', models: [DEFAULT_MODEL], weight: 1 }),
  );
  const waitForever = () => new Promise<never>(() => {});
  const fleet = new Fleet({ upstreams, report: waitForever, waitUntil: () => {}, clock: systemClock, edge: 'edge' });
  return new ForwardingBackend(fleet, { fetch, keyOf: () => 'secret', clock: systemClock, log: () => {} });
}
