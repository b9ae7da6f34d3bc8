import { startServer } from '../../adapters/node/server.ts';
import { bundle, runWorkers } from '../edge/workerd.ts';
import type { Host } from './host.ts';
import type { Row } from './row.ts';
import { sendTo } from './send.ts';
import { createStage } from './stage.ts';

/** The routes that an edge forwards; the others need a machine of their own. */
const FORWARDED = new Set([
  '/v1/tasks',
  '/v1/decide-extract',
  '/decide',
  '/extract',
  '/v1/decisions',
  '/v1/systemone',
  '/v1/systemone/batch',
  '/v1beta/decisions',
  '/api/alpha/decisions',
  '/api/alpha/systemone',
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/models',
  '/models',
]);

export function isForwarded(row: Row): boolean {
  return [row, ...(row.next ?? [])].every(({ request }) => FORWARDED.has(request.path));
}

/** Starts an edge in workerd before a stage on a Node server. */
export async function openEdge(): Promise<Host> {
  const upstream = await startServer(createStage(), { host: '127.0.0.1', port: 0 });
  const script = await bundle('tests/conformance/edge-worker.ts');
  const edge = await runWorkers([{ name: 'edge', script, bindings: { BOX: upstream.url } }]);
  return {
    name: 'edge',
    send: sendTo(edge.urls[0]!),
    close: async () => {
      await edge.close();
      await upstream.close(0);
    },
  };
}
