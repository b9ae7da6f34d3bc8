import { AssayError } from '../../lib/errors.ts';
import type { Question } from '../contracts/question.ts';
import { type Adapter, type Planned, plansAtOnce, type RowOutput } from './adapter.ts';
import type { EncoderGraphs } from './encoder-graphs.ts';

const TEXT = 'The parcel came two weeks late and the mug was broken. I want my money back.';
const option = (name: string, description: string | null = null) => ({ name, description });
const QUESTIONS: readonly Question[] = [
  {
    task: 'team',
    id: 'team',
    kind: 'choice',
    instructions: 'Which team answers?',
    options: [option('billing', 'payments'), option('shipping', 'parcels'), option('sales'), option('support')],
  },
  {
    task: 'refund',
    id: 'refund',
    kind: 'predicate',
    instructions: 'The customer wants a refund.',
    options: [option('true'), option('false')],
  },
  {
    task: 'anger',
    id: 'anger',
    kind: 'score',
    instructions: 'How angry?',
    options: [option('0', 'calm'), option('1', 'annoyed'), option('2', 'furious')],
  },
];

/**
 * Asks a model a few questions, and returns the logits of their options as the author's code reads them, shifted to a
 * mean of 0. Precisions are compared by them: what counts are the answers, not the states between.
 */
export async function probeLogits(adapter: Adapter, graphs: EncoderGraphs): Promise<number[][]> {
  const logits: number[][] = [];
  for (const plan of probePlans(adapter)) {
    const outputs: RowOutput[] = [];
    for (const row of plan.rows) outputs.push(...(await graphs.run([row])));
    const answer = await plan.read(outputs, graphs.head);
    const logprobs = 'logprobs' in answer ? answer.logprobs : [];
    const mean = logprobs.reduce((sum, one) => sum + one, 0) / logprobs.length;
    // Five digits are far more precise than the logits of any precision.
    logits.push(logprobs.map((one) => Number((one - mean).toPrecision(5))));
  }
  return logits;
}

/** Plans the questions about as much of the text as the model can read. */
function probePlans(adapter: Adapter): Planned[] {
  for (const text of [TEXT, TEXT.slice(0, 30), '.']) {
    try {
      const options = { calibrated: false, windows: false };
      return QUESTIONS.flatMap((question) => plansAtOnce(adapter, [question], text, options));
    } catch (error) {
      if (!(error instanceof AssayError) || error.code !== 'input_too_long') throw error;
    }
  }
  throw new AssayError('engine_failed', 'The model reads too few tokens for a question. Use another model.');
}

/** Runs of the timed rows. The fastest counts, because other processes slow the others down. */
const ROUNDS = 3;

/** Returns the milliseconds of processor time that the questions take. */
export async function probeMs(adapter: Adapter, graphs: EncoderGraphs): Promise<number> {
  const plans = probePlans(adapter);
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (const { rows } of plans) for (const batch of graphs.batches(rows)) await graphs.run(batch);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
