import { describe, expect, it, test } from 'vitest';
import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import type { DecideTask, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { stringifyAsWritten } from '../../lib/json/written-numbers.ts';
import { batchOfSystemOne } from '../../lib/questions/systemone.ts';
import { rowTokens } from '../../runtime/contracts/encoder-contracts.ts';
import { questionOf, stateOf } from '../../runtime/contracts/question.ts';
import { type EncoderRow, type Planned, plansAtOnce, type RowOutput } from '../../runtime/encoder/adapter.ts';
import { type SchemaPart, SchemaReader, schemaRow, wordsOf } from '../../runtime/encoder/contracts/gliner2.ts';
import { openEncoderGraphs } from '../../runtime/encoder/encoder-graphs.ts';
import { openAdapter, READ_IN_TEXTS } from '../../runtime/encoder/open-adapter.ts';
import type { PreparedWork, ServedModel } from '../../runtime/worker/serve.ts';
import { contractOf, FAMILIES, goldenOf, loadFixture, tokenizerOf } from './encoder-fixtures.ts';

/* Answers of the authors' own code, with tiny random weights (tests/fixtures/encoders/README.md). */

// biome-ignore lint/suspicious/noExplicitAny: the reference's cases, which differ by family
type Expected = any;
const TOLERANCE = 1e-4;
const ABSTAIN = '__insufficient_evidence__';
const SETTINGS = { calibrated: true, windows: false };

/** Returns the batch of a request in the System One format. */
function asked(state: unknown, questions: object): TaskBatch {
  const text = stringifyAsWritten({ state, questions });
  return batchOfSystemOne({ model: 'a/b', state: state as never, questions: questions as never }, text);
}

interface Played {
  name: string;
  task: DecideTask;
  plan: Planned;
  expected: Expected;
}

/** Plans the questions of a case; null for those that the reference cuts, which are refused. */
function plansOf(family: string, one: { state: unknown; questions: object; expected: Expected }): Played[] {
  const contract = contractOf(family);
  const adapter = openAdapter(contract, tokenizerOf(family), new Set(['model']));
  const batch = asked(one.state, one.questions);
  const tasks = batch.tasks.filter((task) => task.type === 'decide');
  const state = stateOf(batch, adapter.readsMessages === true).value;
  const together = family === 'open-jev' ? [tasks] : tasks.map((task) => [task]);
  return together.flatMap((group) => {
    const names = group.map((task) => task.sent!.id);
    const questions = group.map((task) => questionOf(task, family, { options: 255, levels: 255 }));
    const plan = () => plansAtOnce(adapter, questions, state, SETTINGS);
    const first = one.expected[at(names, 0)];
    if (first.refused || first.truncated || isFull(first, rowTokens(contract))) {
      expect(plan, names.join()).toThrow(expect.objectContaining({ code: 'input_too_long' }));
      return [];
    }
    return plan().map((each, i) => ({
      name: at(names, i),
      task: at(group, i),
      plan: each,
      expected: one.expected[at(names, i)],
    }));
  });
}

/** Tells whether a row of the reference has all tokens that the model reads: it was cut without a word. */
function isFull({ input_ids, rows = [] }: Expected, most: number): boolean {
  const lists = [input_ids, ...rows.map((row: Expected) => row.input_ids ?? row)].filter(Boolean);
  return lists.flatMap((ids) => (Array.isArray(ids[0]) ? ids : [ids])).some(({ length }: number[]) => length === most);
}

const idsOf = ({ input_ids, rows, row }: Expected): number[][] =>
  rows?.map((one: Expected) => one.input_ids ?? one) ??
  (row ? [row.input_ids] : [input_ids].flat().some(Array.isArray) ? input_ids : [input_ids]);

describe.each(FAMILIES.filter((family) => family !== 'gliner2'))('%s', (family) => {
  it.each(goldenOf(family).cases.map((one) => [one.name, one] as const))(
    'writes the rows of %s as the author does',
    (_, one) => {
      for (const { name, plan, expected } of plansOf(family, one)) {
        // Questions after the first in a row of several have no rows of their own.
        if (!expected.row && !expected.rows && !expected.input_ids) continue;
        expect(
          plan.rows.map(({ ids }) => ids),
          name,
        ).toEqual(idsOf(expected));
        if (expected.markers) expect(plan.rows[0]!.markers, name).toEqual(expected.markers);
        if (expected.row) {
          const { tokens, questions, options } = plan.rows[0]!.parts!;
          const { seg, pair_q, pair_opt } = expected.row;
          expect([tokens, questions, options]).toEqual([seg, pair_q, pair_opt]);
        }
      }
    },
  );

  it('reads the answers as the author does', async () => {
    for (const one of goldenOf(family).cases) {
      for (const { name, task, plan, expected } of plansOf(family, one)) {
        if (family === 'open-jev') continue;
        const answer = await plan.read(
          plan.rows.map((row, i) => logitsFor(row, i, task, expected, family)),
          noHeads,
        );
        expectAnswer(`${one.name}/${name}`, task, answer, expected);
      }
    }
  });
});

describe.each(FAMILIES)('%s, asked with control tokens in the texts', (family) => {
  const plain = tokenizerOf(family);
  const { control } = plain;
  // Of these, the reference's rows have the ids: tests/fixtures/encoders, cases `special-text`.
  const read = new Set(plain.reading(READ_IN_TEXTS[contractOf(family).name] ?? []).kept);
  const texts = [...control].flatMap(([id, text]) => (read.has(id) ? [] : [text, wide(text)]));
  const hostile = `one ${texts.join(' ')}${texts.join('')} two`;
  /** Returns the control tokens of the rows of questions, in order. */
  const controls = (state: string, word: string): number[][] => {
    const adapter = openAdapter(contractOf(family), tokenizerOf(family), new Set(['model', 'classifier', 'encoder']));
    const batch = asked(state, {
      a: { type: 'choice', instructions: word, criteria: { [word]: word, other: null } },
      b: { type: 'noul', instructions: word, criteria: { true: word, false: 'no' } },
      c: { type: 'score', instructions: 'How?', criteria: [word, 'high'] },
    });
    const questions = batch.tasks.map((task) => questionOf(task, family, { options: 255, levels: 255 }));
    const plans = plansAtOnce(adapter, questions, state, SETTINGS);
    return plans.flatMap(({ rows }) => rows.map(({ ids }) => ids.filter((id) => control.has(id) && !read.has(id))));
  };

  it('reads none in the state, the questions and the options', () => {
    expect(controls(hostile, 'word')).toEqual(controls('plain', 'word'));
    for (const text of texts) expect(controls('plain', `${text} word`), text).toEqual(controls('plain', 'word'));
  });
});

/** Returns a text in wide letters, which some tokenizers read as the usual ones. */
const wide = (text: string): string =>
  text.replace(/[!-~]/gu, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0));

const noHeads = (): never => {
  throw new Error('this family has no heads');
};

/** Returns what the graph must have computed for a row, so that the reference's probabilities follow. */
function logitsFor(
  { ids, markers }: EncoderRow,
  row: number,
  task: DecideTask,
  expected: Expected,
  family: string,
): RowOutput {
  if (expected.bins) {
    const temperature = 0.87; // of the fixture's open_decision.json
    return { score_logits: Float32Array.from(expected.bins, (p: number) => Math.log(p) * temperature) };
  }
  if (family === 'open-decision') return { choice_logits: Float32Array.of(expected.logits[row]) };
  if (expected.rows) return { logits: Float32Array.from(expected.rows[row].logits) };
  const logits: number[] = expected.logits ?? expected.probabilities.map(Math.log);
  // Without logits, the probabilities of a predicate are given for yes and no, and the row has false and true.
  const inRow = expected.logits || task.kind !== 'predicate' ? logits : logits.toReversed();
  if (family !== 'opendecider') return { logits: Float32Array.from(inRow) };
  const all = new Float32Array(ids.length);
  for (const [i, marker] of markers!.entries()) all[marker] = at(inRow, i);
  return { logits: all };
}

function expectAnswer(
  name: string,
  task: DecideTask,
  answer: Awaited<ReturnType<Planned['read']>>,
  expected: Expected,
): void {
  if (!('logprobs' in answer)) throw new Error('no answer to a question');
  const got = answer.logprobs.map(Math.exp);
  if (expected.bins) {
    expect(
      got.reduce((sum, p, level) => sum + p * level, 0),
      name,
    ).toBeCloseTo(expected.score, 3);
    return;
  }
  expect(Boolean(answer.abstained), name).toBe(expected.abstained === true);
  const wanted = probabilitiesOf(task, expected);
  for (const [i, p] of wanted.entries()) expect(Math.abs(at(got, i) - p), `${name} ${i}`).toBeLessThan(TOLERANCE);
}

/** Returns the reference's probabilities in the order of the task's options, without that of abstaining. */
function probabilitiesOf({ kind, options = [] }: DecideTask, { probabilities, order }: Expected): number[] {
  const names: string[] = Array.isArray(order)
    ? order.map(String)
    : kind === 'predicate'
      ? ['yes', 'no']
      : [...options];
  const kept = names.flatMap((name, i) => (name === ABSTAIN ? [] : [{ name, p: probabilities[i] }]));
  const sum = kept.reduce((total, { p }) => total + p, 0);
  const inOrder = kind === 'predicate' && /^(no|false)$/.test(kept[0]!.name) ? kept.toReversed() : kept;
  return inOrder.map(({ p }) => p / sum);
}

describe('gliner2', () => {
  const tokenizer = tokenizerOf('gliner2');

  test.each([false, true])(
    'rows, classes, spans and structures are those of the library (checkpoint: %s)',
    async (checkpoint) => {
      const served = await loadFixture('gliner2', { checkpoint });
      const roles = ['encoder', 'classifier', 'span_rep', 'count_pred', 'count_embed_all'];
      const graphs = await openEncoderGraphs(
        served.dir,
        { graphs: Object.fromEntries(roles.map((role) => [role, `${role}.onnx`])) },
        { pad: tokenizer.special.pad, threads: 1 },
      );
      try {
        for (const { name, text, schema, threshold, expected } of goldenOf('gliner2').cases) {
          const parts = partsOf(schema);
          const written = atOnce(schemaRow(parts, atOnce(wordsOf(text, tokenizer)), tokenizer));
          expect(written.row.ids, name).toEqual(expected.input_ids);
          expect(written.parts, name).toEqual(expected.markers);
          expect(written.first, name).toEqual(expected.word_first_tokens);
          const [output = {}] = await graphs.run([written.row]);
          const reader = new SchemaReader(written, output, graphs.head, 5);
          for (const [i, part] of parts.entries()) {
            if (part.kind === 'classification') {
              const { multi_label } = schema.classifications.find(
                (one: Expected) => one.task === part.prompt.split(' [')[0],
              );
              const logits = await reader.classes(i);
              const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
              const got = logits.map((logit) => (multi_label ? 1 / (1 + Math.exp(-logit)) : Math.exp(logit) / total));
              const wanted: number[] = expected.classification[part.prompt.split(' [')[0]!].probabilities;
              for (const [k, p] of wanted.entries())
                expect(Math.abs(at(got, k) - p), `${name} ${k}`).toBeLessThan(TOLERANCE);
              continue;
            }
            expect((await reader.count(i)).count, name).toBe(expected.counts[i]);
            if (part.kind !== 'entities') continue;
            const query = await reader.queries(i, true);
            for (const [k, { label }] of part.labels.entries()) {
              const spans = await reader.spans(query(0, k), threshold);
              const wanted = expected.result.entities[label];
              expect(
                spans.map(({ start, end }) => [start, end]),
                `${name} ${label}`,
              ).toEqual(wanted.map((one: Expected) => [one.start_utf16, one.end_utf16]));
              for (const [s, { probability }] of spans.entries()) {
                expect(Math.abs(probability - wanted[s].confidence)).toBeLessThan(TOLERANCE);
              }
            }
          }
        }
      } finally {
        await graphs.close();
        served.close();
      }
    },
  );
});

function partsOf({ structures = {}, entities, classifications = [] }: Expected): SchemaPart[] {
  const labels = (given: Expected) =>
    Array.isArray(given)
      ? given.map((label: string) => ({ label }))
      : Object.entries(given).map(([label, description]) => ({ label, description: description as string }));
  return [
    ...Object.entries(structures).map(
      ([name, fields]): SchemaPart => ({
        kind: 'structure',
        name,
        fields: (fields as Expected[]).map((field) => ({
          ...field,
          kind: field.dtype === 'list' ? 'texts' : 'text',
          nullable: true,
          needed: false,
        })),
      }),
    ),
    ...(entities ? [{ kind: 'entities' as const, labels: labels(entities) }] : []),
    ...classifications.map((one: Expected) => ({
      kind: 'classification',
      prompt: one.task,
      labels: labels(one.labels),
    })),
  ];
}

/** Prepares a batch in one go. */
function prepared(model: ServedModel, batch: TaskBatch): PreparedWork {
  const parts = model.prepare({ kind: 'tasks', batch }, {});
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
  }
}

/** Answers a batch with a loaded model. */
async function answersOf(model: ServedModel, batch: TaskBatch): Promise<readonly TaskAnswer[]> {
  let answers: readonly TaskAnswer[] = [];
  const reply = (message: { type: string; answers?: readonly TaskAnswer[] }) => {
    if (message.type === 'answers') answers = message.answers ?? [];
  };
  await prepared(model, batch).run({ reply, signal: new AbortController().signal }, 60_000, []);
  return answers;
}

describe.each([
  ...['laya', 'decision-tune', 'nli-deberta', 'verdict', 'open-decision'].map((family) => ({
    family,
    checkpoint: false,
  })),
  { family: 'nli-deberta', checkpoint: true },
])('$family, compiled and loaded (checkpoint: $checkpoint)', ({ family, checkpoint }) => {
  it('answers as the author does, each question as if it were alone', async () => {
    const model = await loadFixture(family, { checkpoint });
    try {
      for (const { name, state, questions, expected } of goldenOf(family).cases) {
        const batch = asked(state, questions);
        const fits = batch.tasks.filter((task) => {
          try {
            prepared(model, { ...batch, tasks: [task] });
            return true;
          } catch {
            return false;
          }
        });
        const tasks = fits.filter((task) => task.type === 'decide');
        if (tasks.length === 0) continue;
        const together = await answersOf(model, { ...batch, tasks });
        for (const [i, task] of tasks.entries()) {
          const want = expected[task.sent!.id];
          const { optionLogprobs = [] } = at(together, i);
          expectAnswer(`${name}/${task.sent!.id}`, task, { logprobs: optionLogprobs }, { ...want, abstained: false });
          const [alone] = await answersOf(model, { ...batch, tasks: [task] });
          for (const [k, logprob] of alone!.optionLogprobs!.entries()) {
            expect(logprob).toBeCloseTo(at(optionLogprobs, k), 5);
          }
        }
      }
    } finally {
      model.close();
    }
  });
});

it.each([
  [' ', ' '],
  ['a_b', ''],
  ['\t', '\t'],
  ['{}', {}],
])('DecisionTune shows %j for the option a_b with that description', (shown, description) => {
  const tokenizer = tokenizerOf('decision-tune');
  const adapter = openAdapter(contractOf('decision-tune'), tokenizer, new Set(['model']));
  const batch = asked('', { q: { type: 'choice', instructions: 'Which?', criteria: { a_b: description, c: null } } });
  const question = questionOf(batch.tasks[0] as DecideTask, 'decision-tune', { options: 9, levels: 9 });
  const [plan] = plansAtOnce(adapter, [question], '', SETTINGS);
  const [from, to] = plan!.rows[0]!.markers as [number, number];
  const ids = plan!.rows[0]!.ids.slice(from + 1, to);
  expect(ids).toEqual(atOnce(tokenizer.encodeInParts(shown.replaceAll('_', ' '))));
});

/** Lists rows and probabilities of GLiClass 0.1.21 with Verdict's weights, which are those of a GLiClass model. */
const GLICLASS = [
  {
    state: 'The parcel came two weeks late.',
    question: 'Which team?',
    options: { billing: null, shipping: 'parcels and couriers', it: null },
    ids: [
      413, 417, 65, 374, 75, 301, 417, 82, 71, 72, 358, 301, 25, 286, 318, 353, 82, 287, 278, 282, 81, 72, 263, 82, 417,
      265, 418, 404, 285, 71, 351, 342, 30, 198, 328, 286, 318, 353, 278, 342, 68, 387, 78, 315, 68, 74, 82, 364, 296,
      13, 414,
    ],
    probabilities: [0.2582999, 0.6661557, 0.0755444],
  },
  {
    state: 'Grüße aus Köln 🎉',
    question: 'Is it late?',
    options: { yes: null, no: null },
    ids: [
      413, 417, 88, 281, 417, 77, 78, 418, 40, 82, 324, 364, 296, 30, 198, 38, 81, 127, 120, 127, 253, 68, 257, 84, 82,
      220, 42, 127, 114, 75, 77, 220, 172, 253, 236, 231, 414,
    ],
    probabilities: [0.6309173, 0.3690827],
  },
];

it('a plain GLiClass model reads and answers as the library does', async () => {
  const without = ['calibrator.json'];
  const adapter = openAdapter(contractOf('verdict', without), tokenizerOf('verdict'), new Set(['model']));
  const model = await loadFixture('verdict', { without });
  try {
    for (const { state, question, options, ids, probabilities } of GLICLASS) {
      const batch = asked(state, { q: { type: 'choice', instructions: question, criteria: options } });
      const [task] = batch.tasks;
      const [plan] = plansAtOnce(adapter, [questionOf(task!, 'gliclass', { options: 9, levels: 9 })], state, SETTINGS);
      expect(plan!.rows[0]!.ids).toEqual(ids);
      const [answer] = await answersOf(model, batch);
      for (const [i, p] of probabilities.entries()) {
        expect(Math.abs(Math.exp(answer!.optionLogprobs![i]!) - p)).toBeLessThan(TOLERANCE);
      }
    }
  } finally {
    model.close();
  }
});

test.each(['gliner2', 'nli-deberta'])('%s: a text of 200,000 tokens is too long, and no fault', (family) => {
  expect(() => atOnce(tokenizerOf(family).encodeInParts('abcdefghij'.repeat(20_000)))).toThrow(
    expect.objectContaining({ code: 'input_too_long' }),
  );
});
