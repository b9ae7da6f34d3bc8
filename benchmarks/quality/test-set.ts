import { readFile } from 'node:fs/promises';
import * as v from 'valibot';

const Json: v.GenericSchema<unknown> = v.unknown();

const DecideCase = v.object({
  type: v.literal('decide'),
  question: v.string(),
  options: v.pipe(v.array(v.string()), v.minLength(2)),
  instruction: v.optional(v.string()),
  expected: v.string(),
  corrected: v.optional(v.string()),
  skill: v.optional(v.string()),
});

const ExtractCase = v.object({
  type: v.literal('extract'),
  instruction: v.string(),
  keys: v.optional(v.array(v.string())),
  schema: v.optional(v.record(v.string(), Json)),
  expected: v.record(v.string(), Json),
  corrected: v.optional(v.record(v.string(), Json)),
  skill: v.optional(v.string()),
});

const Text = v.object({ context: v.string(), tasks: v.array(v.variant('type', [DecideCase, ExtractCase])) });

/**
 * A text with the tasks that are put about it, each with the answer expected. `corrected` is what two readers answered who did not know it,
 * where both contradict it (`models/starter/training/README.md`).
 */
export type Text = v.InferOutput<typeof Text>;
export type Case = Text['tasks'][number];

export function isCorrected(text: Text): boolean {
  return text.tasks.some((task) => task.corrected !== undefined);
}

/** `held-out`: made by `models/starter/training/make_test_set.py`. `natural`: written by hand, and read by nothing else. */
export const TEST_SETS = ['held-out', 'natural'] as const;
export type TestSet = (typeof TEST_SETS)[number];

/** One text a line. Throws for a line that is no text with tasks. */
export async function readTestSet(name: TestSet): Promise<Text[]> {
  const file = await readFile(new URL(`sets/${name}.jsonl`, import.meta.url), 'utf8');
  return file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => v.parse(Text, JSON.parse(line)));
}
