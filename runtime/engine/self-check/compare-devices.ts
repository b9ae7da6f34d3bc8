import type { DeviceFigures } from '../../../lib/schema/device-figures.ts';
import { type KvShape, Sequence } from '../cache/sequence.ts';
import type { Forward } from '../forward/forward.ts';
import { logitError } from './logit-error.ts';
import { spreadTokens } from './spread-tokens.ts';

/** Length of the measured prompt in tokens: more than the largest chunk of a static graph (128). */
const PROMPT_TOKENS = 200;
const BRANCHES = 3;
const BRANCH_TOKENS = 4;
/**
 * Maximum number of measurements of each device, of which the fastest counts. None starts after `REPEAT_MS`
 * milliseconds.
 */
const REPETITIONS = 3;
const REPEAT_MS = 5_000;

/**
 * Runs the same prompt and one step of several branches on the device and on the CPU. Returns the `logitError` of the
 * device's logits against the CPU's (null if it is not finite), and the milliseconds of the fastest of up to three such
 * runs on each.
 */
export async function compareDevices(
  device: { forward: Forward; kv: KvShape },
  cpu: { forward: Forward; kv: KvShape },
  contextLength: number,
): Promise<DeviceFigures> {
  const count = Math.max(1, Math.min(PROMPT_TOKENS, contextLength - BRANCHES * BRANCH_TOKENS));
  const prompt = spreadTokens(cpu.forward.vocabSize, count);
  const [wanted, got] = [await measure(cpu, prompt), await measure(device, prompt)];
  const error = logitError(wanted.logits, got.logits);
  return { error: Number.isFinite(error) ? error : null, deviceMs: got.ms, cpuMs: wanted.ms };
}

async function measure(
  { forward, kv }: { forward: Forward; kv: KvShape },
  prompt: readonly number[],
): Promise<{ logits: Float32Array[]; ms: number }> {
  let logits: Float32Array[] = [];
  let ms = Number.POSITIVE_INFINITY;
  const began = performance.now();
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    const before = performance.now();
    logits = await promptAndBranches(forward, kv, prompt);
    ms = Math.min(ms, performance.now() - before);
    if (performance.now() - began > REPEAT_MS) break;
  }
  return { logits, ms };
}

/** Runs a prompt, then several branches after it. Returns the logits after the prompt and after each branch. */
async function promptAndBranches(forward: Forward, kv: KvShape, prompt: readonly number[]): Promise<Float32Array[]> {
  const sequence = new Sequence(kv, prompt.length + BRANCHES * BRANCH_TOKENS);
  for (const token of prompt) sequence.append(token, sequence.length - 1);
  const afterPrompt = (await forward.run([{ sequence, start: 0, rows: [prompt.length - 1] }])).slice(
    0,
    forward.vocabSize,
  );
  const ends: number[] = [];
  for (let branch = 0; branch < BRANCHES; branch++) {
    let parent = prompt.length - 1;
    for (const token of spreadTokens(forward.vocabSize, BRANCH_TOKENS, prompt.length + branch * BRANCH_TOKENS)) {
      parent = sequence.append(token, parent);
    }
    ends.push(parent);
  }
  const afterBranches = await forward.run([{ sequence, start: prompt.length, rows: ends }]);
  const rowOf = (row: number): Float32Array =>
    afterBranches.slice(row * forward.vocabSize, (row + 1) * forward.vocabSize);
  return [afterPrompt, ...ends.map((_, row) => rowOf(row))];
}
