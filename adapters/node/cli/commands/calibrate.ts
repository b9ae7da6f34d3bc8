import { access, constants, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import * as v from 'valibot';
import { at } from '../../../../lib/at.ts';
import {
  CALIBRATED_KINDS,
  type CalibratedKind,
  type Calibration,
  type Thresholds,
  temperatureOf,
} from '../../../../lib/calibration/calibration.ts';
import {
  FEWEST_LABELS,
  fitTemperature,
  type Labelled,
  reliabilityBins,
  scaled,
} from '../../../../lib/calibration/fit.ts';
import { type Label, type Sample, textNumbers } from '../../../../lib/calibration/labels.ts';
import { reliabilityPlot } from '../../../../lib/calibration/plots.ts';
import { certifiedThreshold } from '../../../../lib/calibration/thresholds.ts';
import { ModelList } from '../../../../lib/schema/model-list.ts';
import { MOST_ORDERS } from '../../../../lib/schema/question-fields.ts';
import { systemCode } from '../../../../runtime/store/disk-error.ts';
import { assayHome } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { type ModelFlags, withModel } from '../ask.ts';
import { askLabels, labelsIn, warnOfTexts } from '../ask-labels.ts';
import { connectionFlags } from '../connection.ts';
import { inside, wholeNumber } from '../parse-flags.ts';
import type { Connection } from '../request.ts';
import { screen, table } from '../screen.ts';

interface CalibrateFlags extends ModelFlags {
  plot?: string;
  out?: string;
  reset?: boolean;
  targetError?: number[];
  confidence: number;
  by: 'kind' | 'question';
  orders?: number;
}

/** Adds the command `assay calibrate`. */
export function addCalibrate(program: Command): void {
  const command = program
    .command('calibrate')
    .description('Fit the probabilities of the loaded model to your own labels.')
    .argument('[labels.jsonl]', 'file with one labelled question on each line; - is standard input')
    .option('--plot <file.svg>', 'draw reliability diagrams: accuracy by confidence, before and after')
    .option('--out <file.json>', 'write the calibration to this file instead of using it')
    .option(
      '--target-error <share>',
      'also certify thresholds: at most this share of the answers above them is wrong; repeat for several',
      (text: string, before: number[] = []) => [...before, inside(text)],
    )
    .option('--confidence <share>', 'probability that a threshold keeps its target error', inside, 0.95)
    .addOption(new Option('--by <group>', 'one threshold for each').choices(['kind', 'question']).default('kind'))
    .option(
      '--orders <number>',
      'orders of the options, as assay serve --orders (default: 1)',
      wholeNumber(1, MOST_ORDERS),
    )
    .option('--reset', 'remove the calibration that was fitted on this machine')
    .option('--model <id>', 'model to calibrate (default: the loaded model of the server)');
  connectionFlags(command)
    .addHelpText('after', CALIBRATE_HELP)
    .action(async (file: string | undefined, flags: CalibrateFlags) => {
      if (Boolean(flags.reset) === (file !== undefined))
        throw new UsageError('Give either a file of labels or --reset.');
      const written = [flags.plot, flags.out].filter((path) => path !== undefined);
      if (flags.reset && written.length > 0) throw new UsageError('--plot and --out need a file of labels.');
      await Promise.all(written.map(checkWritable));
      if ((flags.targetError?.length ?? 0) > 8) throw new UsageError('Give at most 8 of --target-error.');
      const labels = file === undefined ? [] : await labelsIn(file, FEWEST_LABELS, 'calibrate');
      await withModel(flags, async (connection, model) => {
        const fingerprints = await fingerprintsOf(connection, model);
        if (flags.reset) await reset(flags, fingerprints.fingerprint);
        else await calibrate(connection, { model, fingerprints, labels, flags });
      });
    });
}

/** Throws `UsageError` if the file cannot be written, before the model is asked for minutes. */
async function checkWritable(file: string): Promise<void> {
  if (file === '') throw new UsageError('--plot and --out need the name of a file.');
  const path = resolve(file);
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) throw new UsageError(`${path} is a folder. Name a file.`);
  const place = found ? path : dirname(path);
  await access(place, constants.W_OK).catch((cause: unknown) => {
    throw new UsageError(`${place} cannot be written to (${systemCode(cause)}). Choose another folder.`, { cause });
  });
}

async function fingerprintsOf(connection: Connection, model: string): Promise<Fingerprints> {
  const { data } = v.parse(ModelList, await (await connection.request('/v1/models')).json());
  const { fingerprint, policy_fingerprint: policy } = data.find(({ id }) => id === model) ?? {};
  if (fingerprint) return { fingerprint, ...(policy === undefined ? {} : { policy }) };
  throw new UsageError(
    `${model} is not loaded on this server. Load it first; if the server is an edge, calibrate each of its boxes.`,
  );
}

interface Fingerprints {
  fingerprint: string;
  /** Names what thresholds are valid for; absent from a server that does not know it. */
  policy?: string;
}

interface Calibrating {
  model: string;
  fingerprints: Fingerprints;
  labels: readonly Label[];
  flags: CalibrateFlags;
}

async function calibrate(connection: Connection, { model, fingerprints, labels, flags }: Calibrating): Promise<void> {
  const { fingerprint, policy } = fingerprints;
  if (flags.targetError && policy === undefined) {
    throw new UsageError('The server is older than thresholds. Update it, or leave out --target-error.');
  }
  // Thresholds are valid for the number of orders that they were certified with.
  const orders = flags.orders ?? (flags.targetError ? 1 : undefined);
  const asked = await askLabels(connection, {
    model,
    labels,
    calibrated: false,
    ...(orders === undefined ? {} : { orders }),
  });
  // With thresholds, the labels of every second text are held out of the fit, and prove them.
  const texts = textNumbers(labels);
  const isHeldOut = (i: number) => flags.targetError !== undefined && at(texts, i) % 2 === 1;
  const heldOut = asked.filter((_, i) => isHeldOut(i)).flat();
  const fitted = asked.filter((_, i) => !isHeldOut(i)).flat();
  const samples = Map.groupBy(fitted, ({ kind }) => kind);
  const kinds: Calibration['kinds'] = {};
  for (const kind of CALIBRATED_KINDS) {
    const own = samples.get(kind) ?? [];
    if (own.length >= FEWEST_LABELS) kinds[kind] = fitTemperature(own);
    else if (own.length > 0)
      screen.note(`${kind} is not calibrated: it has ${own.length} labels and needs ${FEWEST_LABELS}.`);
  }
  const day = new Date().toISOString().slice(0, 10);
  const plain: Calibration = { version: 1, fingerprint, model, fitted: day, kinds };
  const scaledBy = (sample: Sample) => scaled(sample, temperatureOf(plain, sample.kind));
  const thresholds =
    policy && flags.targetError && thresholdsOf(fitted.map(scaledBy), heldOut.map(scaledBy), policy, flags);
  const calibration: Calibration = { ...plain, ...(thresholds ? { thresholds } : {}) };
  if (flags.plot !== undefined) await writeFile(flags.plot, plot(samples, kinds));
  if (flags.json) screen.json(calibration);
  else {
    screen.line(figures(kinds));
    if (thresholds) screen.line(thresholdTable(thresholds));
  }
  if (flags.targetError)
    warnOfTexts(labels, 'The thresholds count them as if they were; take one or few of each text.');
  for (const [kind, { temperature }] of Object.entries(kinds)) {
    if (temperature === 1) screen.note(`No temperature improves ${kind}: its probabilities stay as they are.`);
  }
  await store(calibration, flags);
}

/** Certifies a threshold for each group of questions and each target error. */
function thresholdsOf(
  chosenFrom: readonly Sample[],
  tested: readonly Sample[],
  fingerprint: string,
  { targetError = [], confidence, by, orders }: CalibrateFlags,
): Thresholds {
  const groupOf = ({ groups }: Sample) => (by === 'question' ? groups[0] : groups.at(-1)) ?? '';
  const [choosing, testing] = [Map.groupBy(chosenFrom, groupOf), Map.groupBy(tested, groupOf)];
  const delta = 1 - confidence;
  const targets = targetError.map((target) => ({
    target_error: target,
    groups: Object.fromEntries(
      [...testing].flatMap(([group, own]) =>
        group === '' ? [] : [[group, certifiedThreshold(choosing.get(group) ?? [], own, { target, delta })]],
      ),
    ),
  }));
  return { method: 'ltt-fixed-sequence', confidence, fingerprint, orders: orders ?? 1, targets };
}

function thresholdTable({ targets, confidence }: Thresholds): string {
  const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
  const rows = targets.flatMap(({ target_error, groups }) =>
    Object.entries(groups).map(([group, one]) => [
      group,
      percent(target_error),
      one.threshold === null ? (one.reason ?? 'none') : `p >= ${one.threshold.toFixed(4)}`,
      String(one.labels),
      String(one.accepted),
      String(one.errors),
      one.error_upper === null ? '' : percent(one.error_upper),
      percent(one.coverage),
    ]),
  );
  const head = [
    'GROUP',
    'TARGET',
    'THRESHOLD',
    'LABELS',
    'ACCEPTED',
    'ERRORS',
    `ERROR AT MOST (${percent(confidence)})`,
    'COVERAGE',
  ];
  return `\n${table([head, ...rows])}`;
}

function figures(kinds: Calibration['kinds']): string {
  const rows = Object.entries(kinds).map(([kind, { temperature, labels, before, after }]) =>
    [kind, labels, temperature, before.ece, after.ece, before.brier, after.brier].map(String),
  );
  return table([['KIND', 'LABELS', 'TEMPERATURE', 'ECE BEFORE', 'AFTER', 'BRIER BEFORE', 'AFTER'], ...rows]);
}

function plot(samples: ReadonlyMap<CalibratedKind, readonly Labelled[]>, kinds: Calibration['kinds']): string {
  const diagrams = Object.entries(kinds).flatMap(([kind, { temperature }]) => {
    // Object.entries types its keys as strings; all of them are calibrated kinds.
    const own = samples.get(kind as CalibratedKind) ?? [];
    return [
      { title: `${kind}, before`, bins: reliabilityBins(own) },
      { title: `${kind}, after`, bins: reliabilityBins(own.map((sample) => scaled(sample, temperature))) },
    ];
  });
  return reliabilityPlot(diagrams);
}

async function store(calibration: Calibration, flags: CalibrateFlags): Promise<void> {
  if (flags.out !== undefined) {
    await writeFile(flags.out, `${JSON.stringify(calibration, null, 2)}\n`);
    screen.note(`Written to ${flags.out}. To use it, copy it to <home>/calibrations/${calibration.fingerprint}.json.`);
    return;
  }
  const file = await (await calibrations(flags)).write(calibration);
  screen.note(`Stored at ${file}. A server with this home folder uses it from its next request on.`);
}

async function reset(flags: CalibrateFlags, fingerprint: string): Promise<void> {
  const removed = await (await calibrations(flags)).remove(fingerprint);
  if (flags.json) return screen.json({ fingerprint, removed });
  screen.note(
    removed
      ? 'Removed. If the model ships with a calibration, that one is used again.'
      : 'There was no calibration to remove.',
  );
}

/** Opens the calibrations in the home folder. Imports their code only when needed, which keeps other commands fast. */
async function calibrations(flags: CalibrateFlags) {
  const [{ Calibrations }, { StorePaths }] = await Promise.all([
    import('../../../../runtime/store/calibrations.ts'),
    import('../../../../runtime/store/paths.ts'),
  ]);
  const home = assayHome(flags, process.env);
  return new Calibrations(new StorePaths({ hubCache: home, assayHome: home, bundled: null }));
}

const CALIBRATE_HELP = `
Each line of the file is a question of POST /v1/decisions with its text (input) and the right answer (label):
  {"input": "Help!", "type": "predicate", "instructions": "Is this urgent?", "label": true}
  {"input": "…", "type": "choice", "instructions": "Which team?", "choices": [{"value": "it"}, {"value": "hr"}], "label": "it"}
  {"input": "…", "type": "score", "instructions": "How angry?", "levels": [{"label": "calm"}, {"label": "angry"}], "label": "calm"}
  {"input": "…", "type": "multi", "instructions": "About?", "choices": [{"value": "lamp"}, {"value": "price"}], "label": ["lamp"]}
  {"input": "…", "type": "date", "name": "due", "instructions": "Due date", "label": null}
  {"state": {…}, "questions": {"urgent": {"type": "noul", "instructions": "Urgent?"}}, "gold": {"urgent": true}}
  {"input": "…", "type": "extract", "instructions": "The order", "keys": ["id"], "label": {"id": "A-1"}}

The command fits a temperature for each kind of question; a value above 1 means that the model was overconfident. It prints the expected
calibration error (ECE) and the Brier score before and after. The scores after are measured on labels that were left out of the fit.

With --target-error, the labels of half of the texts are held out. On them, thresholds chosen beforehand are tested one after the other with an exact binomial
bound (Learn then Test): with the --confidence, at most that share of the answers above a threshold is wrong, as long as new questions are like the
labelled ones. Requests with max_error then say x_automated. 5% needs 59 held-out labels of a group without an error.

Examples:
  $ assay calibrate labels.jsonl --plot reliability.svg
  $ assay calibrate labels.jsonl --target-error 0.05 --target-error 0.1
  $ assay calibrate --reset`;
