import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import type { ModelId } from '../../lib/model-id.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
import { childrenOf } from './children.ts';

/* Loads a model, or begins to load one that hangs, prints the engine's process id, and waits to be killed. */
const engine = new Supervisor({
  log: pino({ level: 'silent' }),
  entry: new URL('./scripted-child.ts', import.meta.url),
});
const dir = process.argv[2] ?? '';
const loaded = engine.load({ model: 'test/scripted' as ModelId, dir });
if (dir === '/hang') while (!((engine.status().silentMs ?? 0) > 1_500)) await setTimeout(100);
else await loaded;
console.log(childrenOf(process.pid)[0]);
setInterval(() => {}, 1_000);
