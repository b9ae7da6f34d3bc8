import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import * as v from 'valibot';
import type { Interval } from '../../../../lib/calibration/bounds.ts';
import {
  type Comparison,
  compare,
  type Evaluation,
  evaluate,
  type RowOutcome,
} from '../../../../lib/calibration/evaluate.ts';
import { outcomeOf } from '../../../../lib/calibration/fit.ts';
import { type Label, type Sample, textNumbers } from '../../../../lib/calibration/labels.ts';
import { coveragePlot, escaped, reliabilityPlot } from '../../../../lib/calibration/plots.ts';
import { messageOf } from '../../../../lib/errors.ts';
import { UsageError } from '../../usage-error.ts';
import { type ModelFlags, withModel } from '../ask.ts';
import { askLabels, labelsIn, warnOfTexts } from '../ask-labels.ts';
import { connectionFlags } from '../connection.ts';
import { share } from '../parse-flags.ts';
import { screen, table } from '../screen.ts';

interface EvalFlags extends ModelFlags {
  html?: string;
  compare?: string;
  minAccuracy?: number;
  calibrated: boolean;
}

/** Adds the command `assay eval`. */
export function addEval(program: Command): void {
  const command = program
    .command('eval')
    .description('Measure how good the answers of the loaded model to your own labels are.')
    .argument('<labels.jsonl>', 'file of labels, as for assay calibrate; - is standard input')
    .option('--html <file.html>', 'also write the report as one page with its diagrams')
    .option('--compare <report.json>', 'compare with an earlier report of the same labels, which --json printed')
    .option('--min-accuracy <share>', 'exit with 1 if fewer answers are right', share)
    .option('--no-calibrated', "evaluate the model's own probabilities")
    .option('--model <id>', 'model to evaluate (default: the loaded model of the server)');
  connectionFlags(command)
    .addHelpText('after', EVAL_HELP)
    .action(async (file: string, flags: EvalFlags) => {
      const labels = await labelsIn(file, 1, 'eval');
      const other = flags.compare === undefined ? null : await reportIn(flags.compare);
      await withModel(flags, async (connection, model) => {
        const samples = await askLabels(connection, { model, labels, calibrated: flags.calibrated });
        await report({ model, labels, samples, other, flags });
      });
    });
}

const Rows = v.array(v.object({ key: v.string(), name: v.string(), right: v.boolean(), confidence: v.number() }));
const Report = v.pipe(v.string(), v.parseJson(), v.object({ model: v.string(), rows: Rows }));
type OtherReport = v.InferOutput<typeof Report>;

async function reportIn(file: string): Promise<OtherReport> {
  try {
    return v.parse(Report, await readFile(file, 'utf8'));
  } catch (cause) {
    throw new UsageError(`${file} is no report of assay eval --json: ${messageOf(cause)}`, { cause });
  }
}

interface Evaluated {
  model: string;
  labels: readonly Label[];
  samples: readonly (readonly Sample[])[];
  other: OtherReport | null;
  flags: EvalFlags;
}

async function report({ model, labels, samples, other, flags }: Evaluated): Promise<void> {
  const all = samples.flat();
  if (all.length === 0) throw new UsageError('No label has an answer that can be judged.');
  const evaluation = evaluate(all);
  const rows = labels.flatMap((label, i) => rowsOf(label, samples[i] ?? []));
  const comparison = other && compared(rows, other);
  const texts = new Set(textNumbers(labels)).size;
  const header = { model, evaluated: new Date().toISOString().slice(0, 10), texts };
  if (flags.html !== undefined) await writeFile(flags.html, page(header, evaluation, comparison, other));
  if (flags.json) screen.json({ ...header, ...evaluation, ...(comparison ? { comparison } : {}), rows });
  else screen.line(text(evaluation, comparison, other));
  warnOfTexts(labels, 'The intervals count them as if they were, so they are too narrow.');
  const { minAccuracy } = flags;
  if (minAccuracy === undefined || evaluation.accuracy.value >= minAccuracy) return;
  screen.note(`The accuracy, ${percent(evaluation.accuracy.value)}, is below ${percent(minAccuracy)}.`);
  process.exitCode = 1;
}

/** Returns whether each answer to a label was right, with a key of its input and right answer. */
function rowsOf({ input, label }: Label, samples: readonly Sample[]): RowOutcome[] {
  const key = createHash('sha256')
    .update(JSON.stringify([input, label]))
    .digest('hex')
    .slice(0, 16);
  return samples.map((sample) => ({ key, name: sample.name, ...outcomeOf(sample) }));
}

function compared(rows: readonly RowOutcome[], other: OtherReport): Comparison {
  try {
    return compare(rows, other.rows);
  } catch (cause) {
    throw new UsageError(messageOf(cause), { cause });
  }
}

const percent = (value: number): string => `${(100 * value).toFixed(1)}%`;
const shares = ({ value, low, high }: Interval): string => `${percent(value)} (${percent(low)} to ${percent(high)})`;
const numbers = ({ value, low, high }: Interval): string =>
  `${value.toFixed(4)} (${low.toFixed(4)} to ${high.toFixed(4)})`;

function summary({ labels, accuracy, brier, ece }: Evaluation): string[][] {
  return [
    ['labels', String(labels)],
    ['accuracy', shares(accuracy)],
    ['Brier score', numbers(brier)],
    ['calibration error (ECE)', numbers(ece)],
  ];
}

const QUESTION_HEAD = ['QUESTION', 'KIND', 'LABELS', 'ACCURACY (95%)', 'BRIER', 'ECE'];
const COVERAGE_HEAD = ['COVERAGE', 'PROBABILITY AT LEAST', 'ACCEPTED', 'WRONG (95%)'];

function questionRows({ questions }: Evaluation): string[][] {
  return questions.map(({ name, kind, labels, accuracy, brier, ece }) => [
    name.length > 40 ? `${name.slice(0, 39)}…` : name,
    kind,
    String(labels),
    shares(accuracy),
    brier.value.toFixed(4),
    ece.value.toFixed(4),
  ]);
}

function coverageRows({ coverage }: Evaluation, every: number): string[][] {
  return coverage
    .filter((_, i) => i % every === every - 1 || i === coverage.length - 1)
    .map(({ coverage: share, threshold, accepted, error }) => [
      percent(share),
      threshold.toFixed(4),
      String(accepted),
      shares(error),
    ]);
}

function comparisonText(
  { accuracy, other_accuracy, difference, only_this, only_other, p_value }: Comparison,
  model: string,
): string {
  return (
    `Compared with ${model} on the same labels: ${percent(accuracy)} against ${percent(other_accuracy)} right, a difference of ${shares(difference)}; ` +
    `${only_this} only here, ${only_other} only there; p = ${p_value.toPrecision(2)} (McNemar, exact).`
  );
}

function text(evaluation: Evaluation, comparison: Comparison | null, other: OtherReport | null): string {
  const confused = evaluation.questions.flatMap(({ name, confusion }) =>
    confusion ? [`\n${name}: right answer by row, answer by column\n${confusionText(confusion)}`] : [],
  );
  return [
    table(summary(evaluation)),
    `\n${table([QUESTION_HEAD, ...questionRows(evaluation)])}`,
    `\n${table([COVERAGE_HEAD, ...coverageRows(evaluation, 4)])}`,
    ...confused,
    ...(comparison && other ? [`\n${comparisonText(comparison, other.model)}`] : []),
  ].join('\n');
}

function confusionText({ options, counts }: NonNullable<Evaluation['questions'][number]['confusion']>): string {
  const short = options.map((option) => (option.length > 20 ? `${option.slice(0, 19)}…` : option));
  return table([['', ...short], ...counts.map((row, i) => [short[i] ?? '', ...row.map(String)])]);
}

/** Style of the page, in the reader's colours. The diagrams keep a white ground; wide tables scroll on their own. */
const STYLE = [
  ':root{color-scheme:light dark}',
  'body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}',
  'div{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0}',
  'td,th{border:1px solid #8888;padding:.25rem .6rem;text-align:left;overflow-wrap:normal}',
  'td{font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto;margin-right:1rem;border-radius:.4rem}',
].join('');

/** Returns the report as one page of HTML that needs no other file. */
function page(
  { model, evaluated, texts }: { model: string; evaluated: string; texts: number },
  evaluation: Evaluation,
  comparison: Comparison | null,
  other: OtherReport | null,
): string {
  const cells = (tag: string, row: readonly string[]) =>
    row.map((cell) => `<${tag}>${escaped(cell)}</${tag.slice(0, 2)}>`).join('');
  const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    `<div><table><thead><tr>${cells('th scope="col"', head)}</tr></thead><tbody>${rows.map((row) => `<tr>${cells('td', row)}</tr>`).join('')}</tbody></table></div>`;
  const confused = evaluation.questions.flatMap(({ name, confusion }) =>
    confusion
      ? [
          `<h3>${escaped(name)}</h3>`,
          tableOf(
            ['right \\ answered', ...confusion.options],
            confusion.counts.map((row, i) => [confusion.options[i] ?? '', ...row.map(String)]),
          ),
        ]
      : [],
  );
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<title>Evaluation of ${escaped(model)}</title>`,
    `<style>${STYLE}</style>`,
    `</head><body><h1>Evaluation of ${escaped(model)}</h1><p>${evaluated}. Intervals are of 95%.${texts < evaluation.labels ? ` The labels are about ${texts} texts: as those of one text are not independent, the intervals are too narrow.` : ''}</p>`,
    tableOf(['measure', 'value'], summary(evaluation)),
    ...(comparison && other ? [`<p>${escaped(comparisonText(comparison, other.model))}</p>`] : []),
    '<h2>Calibration, and error by coverage</h2>',
    reliabilityPlot([{ title: 'all questions', bins: evaluation.bins }]),
    coveragePlot(evaluation.coverage),
    tableOf(COVERAGE_HEAD, coverageRows(evaluation, 2)),
    '<h2>Questions</h2>',
    tableOf(QUESTION_HEAD, questionRows(evaluation)),
    ...confused,
    '</body></html>',
    '',
  ].join('\n');
}

const EVAL_HELP = `
The report has the accuracy, the Brier score, the expected calibration error (ECE), the error of the answers that are at least so probable, and which
options were confused, with confidence intervals of 95%. --json prints all of it, with each answer.

Examples:
  $ assay eval labels.jsonl --html report.html --min-accuracy 0.9
  $ assay eval labels.jsonl --json > before.json
  $ assay eval labels.jsonl --compare before.json`;
