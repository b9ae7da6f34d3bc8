import { access, constants, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import * as v from 'valibot';
import { CALIBRATED_KINDS, type CalibratedKind, type Calibration } from '../../../../lib/calibration/calibration.ts';
import {
  FEWEST_LABELS,
  fitTemperature,
  type Labelled,
  reliabilityBins,
  scaled,
} from '../../../../lib/calibration/fit.ts';
import { type Label, readLabel, samplesOf } from '../../../../lib/calibration/labels.ts';
import { messageOf } from '../../../../lib/errors.ts';
import { ModelList } from '../../../../lib/schema/model-list.ts';
import { systemCode } from '../../../../runtime/store/disk-error.ts';
import { COMMAND } from '../../command.ts';
import { assayHome } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { type ModelFlags, withModel } from '../ask.ts';
import { connectionFlags } from '../connection.ts';
import { readText } from '../read-input.ts';
import { reliabilityPlot } from '../reliability-plot.ts';
import type { Connection } from '../request.ts';
import { isWatched, screen, table } from '../screen.ts';

interface CalibrateFlags extends ModelFlags {
  plot?: string;
  out?: string;
  reset?: boolean;
}

/** Largest number of questions that are sent in one request; all of them are about the same text. */
const AT_ONCE = 64;

/** Adds the command `assay calibrate`. */
export function addCalibrate(program: Command): void {
  const command = program
    .command('calibrate')
    .description('Fit the probabilities of the loaded model to your own labels.')
    .argument('[labels.jsonl]', 'file with one labelled question on each line; - is standard input')
    .option('--plot <file.svg>', 'draw reliability diagrams: accuracy by confidence, before and after')
    .option('--out <file.json>', 'write the calibration to this file instead of using it')
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
      const labels = file === undefined ? [] : await readLabels(file);
      await withModel(flags, async (connection, model) => {
        const fingerprint = await fingerprintOf(connection, model);
        if (flags.reset) await reset(flags, fingerprint);
        else await calibrate(connection, { model, fingerprint, labels, flags });
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

async function readLabels(file: string): Promise<Label[]> {
  const lines = (await readText(file)).split('\n');
  const labels = lines.flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return [readLabel(line)];
    } catch (error) {
      throw new UsageError(`${file}, line ${i + 1}: ${messageOf(error)} ${COMMAND} calibrate --help shows the form.`);
    }
  });
  if (labels.length < FEWEST_LABELS) {
    throw new UsageError(
      `${file} has ${labels.length} labels. Calibration needs at least ${FEWEST_LABELS}; a few hundred give better results.`,
    );
  }
  return labels;
}

async function fingerprintOf(connection: Connection, model: string): Promise<string> {
  const { data } = v.parse(ModelList, await (await connection.request('/v1/models')).json());
  const fingerprint = data.find(({ id }) => id === model)?.fingerprint;
  if (fingerprint) return fingerprint;
  throw new UsageError(
    `${model} is not loaded on this server. Load it first; if the server is an edge, calibrate each of its boxes.`,
  );
}

interface Calibrating {
  model: string;
  fingerprint: string;
  labels: readonly Label[];
  flags: CalibrateFlags;
}

async function calibrate(connection: Connection, { model, fingerprint, labels, flags }: Calibrating): Promise<void> {
  const samples = await ask(connection, model, labels);
  const kinds: Calibration['kinds'] = {};
  for (const kind of CALIBRATED_KINDS) {
    const own = samples.get(kind) ?? [];
    if (own.length >= FEWEST_LABELS) kinds[kind] = fitTemperature(own);
    else if (own.length > 0)
      screen.note(`${kind} is not calibrated: it has ${own.length} labels and needs ${FEWEST_LABELS}.`);
  }
  const fitted = new Date().toISOString().slice(0, 10);
  const calibration: Calibration = { version: 1, fingerprint, model, fitted, kinds };
  if (flags.plot !== undefined) await writeFile(flags.plot, plot(samples, kinds));
  if (flags.json) screen.json(calibration);
  else screen.line(figures(kinds));
  for (const [kind, { temperature }] of Object.entries(kinds)) {
    if (temperature === 1) screen.note(`No temperature improves ${kind}: its probabilities stay as they are.`);
  }
  await store(calibration, flags);
}

/**
 * Asks the model all labelled questions, with uncalibrated probabilities. Up to `AT_ONCE` questions about the same text
 * share a request. Returns the answers with their labels, by kind of question.
 */
async function ask(
  connection: Connection,
  model: string,
  labels: readonly Label[],
): Promise<Map<CalibratedKind, Labelled[]>> {
  const samples = new Map<CalibratedKind, Labelled[]>();
  let asked = 0;
  for (const [input, about] of Map.groupBy(labels, (label) => label.input)) {
    for (let from = 0; from < about.length; from += AT_ONCE) {
      const some = about.slice(from, from + AT_ONCE);
      const questions = some.map(({ question }) => question);
      const body = { model, input, questions, calibrated: false, abstain_below: 0, max_output_tokens: 4096 };
      const text = await (await connection.request('/v1/decisions', { body })).text();
      for (const [kind, sample] of samplesOf(some, text)) samples.set(kind, [...(samples.get(kind) ?? []), sample]);
      asked += some.length;
      if (isWatched()) process.stderr.write(`\r${asked} of ${labels.length} questions`);
    }
  }
  if (isWatched()) process.stderr.write('\n');
  return samples;
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
  {"input": "…", "type": "extract", "instructions": "The order", "keys": ["id"], "label": {"id": "A-1"}}

The command fits a temperature for each kind of question; a value above 1 means that the model was overconfident. It prints the expected
calibration error (ECE) and the Brier score before and after. The scores after are measured on labels that were left out of the fit.

Examples:
  $ assay calibrate labels.jsonl --plot reliability.svg
  $ assay calibrate --reset`;
