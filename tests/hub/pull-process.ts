import { systemClock } from '../../lib/clock.ts';
import type { HubServer } from './hub-server.ts';
import { machine } from './pull.ts';

/*
 * Pulls the model of these tests in a process of its own and reports progress: `node pull-process.ts <endpoint>
 * <cache>`. Lines on standard output: `{"stage", "bytes", "step"}` for each progress, at last `{"done": <bytes
 * fetched>}`.
 */
const [endpoint = '', hubCache = ''] = process.argv.slice(2);
const say = (line: unknown): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

const box = await machine({ endpoint } as HubServer, { hubCache, hub: { clock: systemClock } });
const { bytes } = await box.pull({ onProgress: ({ stage, bytes, step }) => say({ stage, bytes, step }) });
say({ done: bytes });
