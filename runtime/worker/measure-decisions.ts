import type { TaskBatch } from '../../lib/backend.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { Engine } from '../engine/engine.ts';
import { kvShape, openModel } from '../engine/model.ts';
import { readModelText } from '../text/model-files.ts';
import { createTextModel } from '../text/text-model.ts';
import { planDecisions } from './decision-job.ts';

/** Texts that the questions below are asked about. They resemble requests to the service. */
const TEXTS = [
  'The parcel came two weeks late and the mug was broken. I want my money back.',
  'Thank you for the quick help yesterday. Everything works again, and I have nothing to add.',
  'ERROR 502 from the payment gateway at 09:14, 09:15 and 09:21. Customers cannot pay. Please call me at once.',
];
const QUESTIONS: TaskBatch['tasks'] = [
  {
    type: 'decide',
    name: 'refund',
    kind: 'predicate',
    question: 'Does the writer ask for money back?',
    options: ['true', 'false'],
  },
  { type: 'decide', name: 'urgent', kind: 'predicate', question: 'Is it urgent?', options: ['true', 'false'] },
  {
    type: 'decide',
    name: 'team',
    kind: 'choice',
    question: 'Which team should answer?',
    options: ['billing', 'shipping', 'support', 'engineering', 'nobody'],
  },
  {
    type: 'decide',
    name: 'mood',
    kind: 'score',
    question: 'How angry is the writer?',
    options: ['calm', 'annoyed', 'angry', 'furious'],
  },
];

/**
 * Asks a few questions of the decision model in `folder`, with its author's prompt, and returns the probabilities of
 * all options.
 *
 * @param source folder with the model's text files
 */
export async function decisionProbabilities(
  folder: string,
  source: string,
  contract: DecisionContract,
): Promise<number[]> {
  const { manifest, forward, close } = await openModel(folder);
  try {
    const { maxPromptLen, contextLength } = manifest;
    const open = contract.open(contractText(createTextModel(await readModelText(source)), maxPromptLen), source);
    const loaded = { contract, open, narrow: manifest.readout !== undefined };
    const engine = new Engine({ forward, kv: kvShape(manifest), maxPromptLen, contextLength, kvBytes: 0 });
    const probabilities: number[] = [];
    for (const context of TEXTS) {
      const batch: TaskBatch = {
        input: { context },
        tasks: QUESTIONS,
        media: [],
        temperature: 0,
        maxOutputTokens: 16,
        probabilities: { calibrated: false },
      };
      const planning = planDecisions(loaded, batch, maxPromptLen);
      let step = planning.next();
      while (!step.done) step = planning.next();
      const { answers } = await step.value.answers(async (plan) => {
        const result = engine.submit({ ...plan, id: 'probe', deadline: Number.POSITIVE_INFINITY });
        while (engine.running + engine.queued > 0) await engine.step();
        return result;
      });
      for (const { optionLogprobs = [] } of answers) probabilities.push(...optionLogprobs.map(Math.exp));
    }
    return probabilities;
  } finally {
    await close();
  }
}

/** Returns the difference that 95% of the probabilities do not exceed. */
export function shiftOf(probabilities: readonly number[], reference: readonly number[]): number {
  const shifts = reference.map((wanted, i) => Math.abs((probabilities[i] ?? Number.NaN) - wanted));
  return shifts.toSorted((one, other) => one - other)[Math.ceil(0.95 * shifts.length) - 1] ?? 0;
}
