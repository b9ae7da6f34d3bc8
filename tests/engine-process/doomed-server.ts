import { pino } from 'pino';
import type { ModelId } from '../../lib/model-id.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
import { childrenOf } from './children.ts';

/* Loads a model, prints the engine's process id, and waits to be killed. */
const engine = new Supervisor({
  log: pino({ level: 'silent' }),
  entry: new URL('./scripted-child.ts', import.meta.url),
});
await engine.load({ model: 'test/scripted' as ModelId, dir: '/fine' });
console.log(childrenOf(process.pid)[0]);
setInterval(() => {}, 1_000);
