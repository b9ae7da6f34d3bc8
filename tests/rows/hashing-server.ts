import { createHash } from 'node:crypto';
import { pino } from 'pino';
import { serverConfig } from '../../adapters/node/config.ts';
import { serve } from '../../adapters/node/serve.ts';
import type { BatchAnswer, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { normalised } from '../../lib/tasks/logprobs.ts';
import { composeScripted } from '../scripted-backend/compose.ts';

/*
 * A server, with batches, whose answers depend on the text alone, so that every row has its own:
 * node hashing-server.ts <port> <home>.
 * Of 100 texts, one is refused and one fails at first; of 400, one finds the server busy at first. Writes a dot for
 * each answer.
 */

const [port = '0', home = ''] = process.argv.slice(2);
const seen = new Set<string>();

function answer(batch: TaskBatch): BatchAnswer {
  const text = 'context' in batch.input ? batch.input.context : '';
  const digest = createHash('sha256').update(text).digest();
  const first = !seen.has(text);
  seen.add(text);
  const kind = digest.readUInt16BE(0) % 400;
  if (kind % 100 === 0) throw new AssayError('input_too_long', 'The text is too long for a test.');
  if (kind % 100 === 1 && first) throw new AssayError('engine_failed', 'The engine failed once.');
  if (kind === 2 && first) throw new AssayError('overloaded', 'Busy once.', { retryAfterSeconds: 1 });
  return {
    model: (batch.model ?? 'assay/starter') as never,
    answers: batch.tasks.map((task, i) => {
      const options = (task.type === 'decide' && task.options) || [];
      const logprobs = normalised(options.map((_, option) => -digest.readUInt8(i + option) / 64));
      const best = logprobs.indexOf(Math.max(...logprobs));
      return { name: task.name, json: JSON.stringify({ value: options[best] }), optionLogprobs: logprobs };
    }),
    finishReason: 'stop',
    usage: { promptTokens: 10, completionTokens: 0 },
  };
}

const compose = async () => {
  const parts = await composeScripted()();
  return {
    ...parts,
    backend: {
      ...parts.backend,
      async runTasks(batch: TaskBatch) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        const answered = answer(batch);
        process.stdout.write('.');
        return answered;
      },
    },
  };
};

const config = serverConfig({ port, home, load: false, batches: true, apiKey: 'key-of-the-test' }, {});
const effects = { log: pino({ level: 'silent' }), say: () => undefined, terminal: false, compose };
const { url } = await serve(config, effects);
process.stdout.write(`${url}\n`);
