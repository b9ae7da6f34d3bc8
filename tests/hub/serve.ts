import { fixtureModel } from '../slot/machine.ts';
import { HubServer } from './hub-server.ts';

/*
 * A hub to try the command line against, without a network: `npm run dev:hub [-- bytes per second]`, then
 * `HF_ENDPOINT=<the printed address> assay pull acme/qwen3`. It has two tiny models with random weights.
 */
const hub = await HubServer.start(
  await fixtureModel('optimum/qwen3', 'acme/qwen3'),
  await fixtureModel('genai/llama-int4', 'acme/llama'),
);
const bytesPerSecond = Number(process.argv[2] ?? 0);
if (bytesPerSecond > 0) hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond } });
console.log(hub.endpoint);
