import { expect, test } from 'vitest';
import type { EncoderRow } from './adapter.ts';
import { batchesOf } from './encoder-graphs.ts';
import { RowScheduler } from './row-scheduler.ts';

const rowsOf = (count: number, from: number): EncoderRow[] =>
  Array.from({ length: count }, (_, i) => ({ ids: new Array<number>(100).fill(from + i), shared: 0 }));

interface Scripted {
  scheduler: RowScheduler;
  /** First ids of the rows of each run. */
  runs: number[][];
  submit(rows: readonly EncoderRow[], caller: string, priority?: 'batch'): ReturnType<RowScheduler['submit']>;
}

/** Returns a scheduler over a model that returns the first id of each row, and takes `runMs` for a run. */
function scripted(runMs = 0, onRun: (runs: number) => void = () => {}): Scripted {
  const runs: number[][] = [];
  const scheduler = new RowScheduler({
    batches: (rows) => batchesOf(rows, false),
    async run(rows) {
      runs.push(rows.map(({ ids }) => ids[0]!));
      onRun(runs.length);
      const end = performance.now() + runMs;
      while (performance.now() < end);
      return rows.map(({ ids }) => ({ logits: Float32Array.of(ids[0]!) }));
    },
  });
  const still = { signal: new AbortController().signal, deadline: Number.POSITIVE_INFINITY };
  return {
    scheduler,
    runs,
    submit: (rows, caller, priority) => scheduler.submit({ rows, caller, priority, ...still }),
  };
}

test('runs are short, and interactive jobs pass between those of batch jobs', async () => {
  let interactive: unknown;
  const { runs, submit } = scripted(0, (count) => {
    if (count === 2) interactive = submit(rowsOf(10, 1000), 'a');
  });
  const { outputs } = await submit(rowsOf(12, 0), 'a', 'batch');
  await interactive;
  expect(runs.map(([first, ...rest]) => [first, 1 + rest.length])).toEqual([
    [0, 5],
    [5, 5],
    [1000, 5],
    [1005, 5],
    [10, 2],
  ]);
  expect(outputs.map(({ logits }) => logits?.[0])).toEqual(Array.from({ length: 12 }, (_, i) => i));
});

test('callers take turns: a short job of one does not wait for all jobs of another', async () => {
  let short: unknown;
  const { runs, submit } = scripted(1, (count) => {
    if (count === 3) short = submit(rowsOf(1, 9000), 'b');
  });
  await Promise.all(Array.from({ length: 8 }, (_, i) => submit(rowsOf(20, 100 * i), 'a')));
  await short;
  expect(runs.findIndex(([first]) => first === 9000)).toBe(3);
  expect(runs.length).toBe(33);
});
