import { createTestHarness } from 'wrangler';
import { startServer } from '../../adapters/node/server.ts';
import { openEdge } from './edge-host.ts';
import type { Host } from './host.ts';
import type { HostName } from './row.ts';
import { fetchDirectly, sendTo } from './send.ts';
import { createStage } from './stage.ts';

export async function openHost(name: HostName): Promise<Host> {
  switch (name) {
    case 'fetch':
      return { name, send: fetchDirectly(createStage()), close: async () => {} };
    case 'socket':
      return openSocket();
    case 'workerd':
      return openWorkerd();
    case 'edge':
      return openEdge();
  }
}

async function openSocket(): Promise<Host> {
  const server = await startServer(createStage(), { host: '127.0.0.1', port: 0 });
  return { name: 'socket', send: sendTo(server.url), close: async () => void (await server.close(0)) };
}

async function openWorkerd(): Promise<Host> {
  process.env.WRANGLER_SEND_METRICS = 'false';
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = 'false';
  const harness = createTestHarness({
    root: new URL('../..', import.meta.url).pathname,
    workers: [
      {
        config: {
          name: 'stage',
          main: 'tests/conformance/worker.ts',
          compatibility_date: '2026-10-01',
          compatibility_flags: ['enable_request_signal'],
        },
      },
    ],
  });
  const { url } = await harness.listen();
  return { name: 'workerd', send: sendTo(url.origin), close: () => harness.close() };
}
