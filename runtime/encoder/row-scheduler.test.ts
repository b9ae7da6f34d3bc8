import { expect, test } from 'vitest';
import type { EncoderRow } from './adapter.ts';
import { batchesOf } from './encoder-graphs.ts';
import { RowScheduler } from './row-scheduler.ts';

const rowsOf = (count: number, from: number): EncoderRow[] =>
  Array.from({ length: count }, (_, i) => ({ ids: new Array<number>(100).fill(from + i), shared: 0 }));

test('runs of batch jobs are short, and interactive jobs pass between them', async () => {
  const runs: number[][] = [];
  const scheduler = new RowScheduler({
    batches: (rows, tokens = 8192) => batchesOf(rows, tokens, false),
    async run(rows) {
      runs.push(rows.map(({ ids }) => ids[0]!));
      if (runs.length === 2) interactive = submit(rowsOf(20, 1000), 'interactive');
      return rows.map(({ ids }) => ({ logits: Float32Array.of(ids[0]!) }));
    },
  });
  const submit = (rows: readonly EncoderRow[], priority: 'batch' | 'interactive') =>
    scheduler.submit({ rows, priority, signal: new AbortController().signal, deadline: Number.POSITIVE_INFINITY });
  let interactive: ReturnType<typeof submit> | undefined;
  const { outputs } = await submit(rowsOf(12, 0), 'batch');
  await interactive;
  expect(runs.map(({ length }) => length)).toEqual([5, 5, 20, 2]);
  expect(outputs.map(({ logits }) => logits?.[0])).toEqual(Array.from({ length: 12 }, (_, i) => i));
});
