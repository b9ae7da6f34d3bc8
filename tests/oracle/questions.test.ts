import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { DecideTask, TaskBatch } from '../../lib/backend.ts';
import { averaged, normalised } from '../../lib/tasks/logprobs.ts';
import { orderings, reordered } from '../../lib/tasks/orders.ts';
import { taskGrammar } from '../../lib/tasks/task-grammar.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import { loadTextModel, type TextModel } from '../../runtime/text/text-model.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { modelFixture } from '../fixture.ts';
import { compileFixture, drive, engineFor } from './fixtures.ts';
import type { PlainModel } from './oracle.ts';
import { publishedModel } from './plain-models.ts';

const RUNS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 20);
const FIXTURE = 'optimum/llama';

let model: EngineModel;
let plain: PlainModel;
let text: TextModel;
beforeAll(async () => {
  model = await compileFixture(FIXTURE, 'float');
  plain = await publishedModel(modelFixture(`${FIXTURE}/onnx/model.onnx`));
  text = await loadTextModel(modelFixture(FIXTURE));
});
afterAll(() => Promise.all([model.close(), plain.close()]));

/** Options that begin alike, take several tokens, or go on where another one ends. */
const option = fc.oneof(
  fc.constantFrom('red', 'red wine', 'red wine glass', 'r', 'yes', 'no', 'true', '10', '1', '"', '\\', 'é', '😀'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
);
const question: fc.Arbitrary<Omit<DecideTask, 'name'>> = fc.record({
  type: fc.constant('decide' as const),
  question: fc.string({ minLength: 1, maxLength: 30 }),
  options: fc.uniqueArray(option, { minLength: 2, maxLength: 6 }),
});

/** The log-probability of each of a question's options: its path through the untouched graph, whole, from nothing. */
async function expected(task: DecideTask, start: readonly number[]): Promise<number[]> {
  const { paths } = taskGrammar(task, text.vocabulary).choice!;
  const totals: number[] = [];
  for (const path of paths) {
    const logits = await plain.logits([...start, ...path]);
    totals.push(path.reduce((sum, token, at) => sum + logSoftmax(logits[start.length - 1 + at]!, token), 0));
  }
  return totals;
}

function logSoftmax(logits: Float32Array, token: number): number {
  const highest = logits.reduce((a, b) => Math.max(a, b));
  return logits[token]! - highest - Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
}

test(`probabilities are those of a plain forward, in ${RUNS} batches`, { timeout: 60_000 + 5_000 * RUNS }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(question, { minLength: 1, maxLength: 4 }),
      fc.string({ maxLength: 40 }),
      fc.constantFrom(1, 1, 2, 3),
      async (asked, context, orders) => {
        const tasks = asked.map((one, i): DecideTask => ({ ...one, name: `q${i}` }));
        const batch: TaskBatch = {
          model: '',
          input: { context },
          media: [],
          tasks,
          temperature: 0,
          maxOutputTokens: 1,
          probabilities: { orders, calibrated: false },
        };
        const { plan, answers } = atOnce(planWriting({ contract: ASSAY, text }, batch, model.manifest));
        const engine = engineFor(model);
        const result = engine.submit({ ...plan, id: 'q', deadline: Number.POSITIVE_INFINITY });
        await drive(engine);
        const answered = (await answers(() => result)).answers;
        let branch = 0;
        for (const [i, task] of tasks.entries()) {
          const found = answered[i]!.optionLogprobs!.map(Math.exp);
          expect(Math.abs(found.reduce((sum, p) => sum + p, 0) - 1)).toBeLessThan(1e-6);
          const inOrders: number[][] = [];
          const masses: number[] = [];
          for (const order of orderings(task.options!.length, orders)) {
            const start = [...plan.prefix, ...plan.branches[branch++]!.suffix];
            const totals = await expected(reordered(task, order), start);
            masses.push(totals.reduce((sum, total) => sum + Math.exp(total), 0));
            const shown = normalised(totals);
            inOrders.push(task.options!.map((_, option) => shown[order.indexOf(option)]!));
          }
          const wanted = averaged(inOrders).map(Math.exp);
          for (const [at, p] of found.entries()) expect(Math.abs(p - wanted[at]!)).toBeLessThan(1e-3);
          const mass = masses.reduce((sum, one) => sum + one, 0) / masses.length;
          expect(Math.abs(answered[i]!.labelMass! - mass)).toBeLessThan(1e-3 * mass + 1e-9);
        }
      },
    ),
    { numRuns: RUNS },
  );
});
