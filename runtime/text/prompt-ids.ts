import { createInterface } from 'node:readline';
import type { TaskBatch } from '../../lib/backend.ts';
import { encodeTasks } from './prompt.ts';
import { loadTextModel } from './text-model.ts';

/**
 * Prints the token ids of prompts, for training and for comparison with other implementations: `node
 * runtime/text/prompt-ids.ts MODEL_DIR < batches.jsonl`. Each input line is a `TaskBatch` as JSON; the output is one
 * line `{"prefix": ids, "branches": [ids, …]}` for each.
 */
const [dir] = process.argv.slice(2);
if (!dir) {
  process.stderr.write('usage: node runtime/text/prompt-ids.ts MODEL_DIR < batches.jsonl\n');
  process.exit(2);
}
const model = await loadTextModel(dir);
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  const batch: TaskBatch = { media: [], temperature: 0, maxOutputTokens: 16, model: '', ...JSON.parse(line) };
  process.stdout.write(`${JSON.stringify(encodeTasks(model, batch))}\n`);
}
