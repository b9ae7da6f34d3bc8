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
 * Holds a text with its tasks, each with the expected answer. `corrected` is the answer of two readers who did not know
 * the expected answer; it is present only if both gave the same other answer (`models/starter/README.md`).
 */
export type Text = v.InferOutput<typeof Text>;
export type Case = Text['tasks'][number];

export function isCorrected(text: Text): boolean {
  return text.tasks.some((task) => task.corrected !== undefined);
}

/**
 * Names of the test sets. `held-out` was generated as the starter model's training texts were, from material kept
 * for it (`models/starter/README.md`). `natural` was written by hand and is used only by benchmarks.
 */
export const TEST_SETS = ['held-out', 'natural'] as const;
export type TestSet = (typeof TEST_SETS)[number];

/** Reads the texts of a test set, which has one on each line. Throws if a line is not a text with tasks. */
export async function readTestSet(name: TestSet): Promise<Text[]> {
  const file = await readFile(new URL(`sets/${name}.jsonl`, import.meta.url), 'utf8');
  return file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => v.parse(Text, JSON.parse(line)));
}
