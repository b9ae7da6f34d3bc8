import {
  type Label,
  readLabels,
  requestOfLabels,
  type Sample,
  samplesOf,
  textNumbers,
} from '../../../lib/calibration/labels.ts';
import { messageOf } from '../../../lib/errors.ts';
import { mapInOrder } from '../../../lib/rows/map-in-order.ts';
import { COMMAND } from '../command.ts';
import { UsageError } from '../usage-error.ts';
import { readTextInput } from './read-input.ts';
import type { Connection } from './request.ts';
import { isWatched, screen } from './screen.ts';

/** Largest number of questions that are sent in one request; all of them are about the same text. */
const AT_ONCE = 64;
/** Number of requests that are asked at once: the engine answers them together. */
const INFLIGHT = 4;

/** Reads a file of labels (`readLabels`). Throws `UsageError` if a line is invalid or there are fewer than `fewest`. */
export async function labelsIn(file: string, fewest: number, command: string): Promise<Label[]> {
  const lines = (await readTextInput(file)).split('\n');
  const labels = lines.flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return readLabels(line);
    } catch (error) {
      throw new UsageError(`${file}, line ${i + 1}: ${messageOf(error)} ${COMMAND} ${command} --help shows the form.`);
    }
  });
  if (labels.length >= fewest) return labels;
  const needs = fewest === 1 ? 'at least one' : `at least ${fewest}; a few hundred give better results`;
  throw new UsageError(
    `${file} has ${labels.length} labels. ${command === 'eval' ? 'Evaluation' : 'Calibration'} needs ${needs}.`,
  );
}

/** Warns that labels of one text are not independent, if there are such; `consequence` says what that means. */
export function warnOfTexts(labels: readonly Label[], consequence: string): void {
  const { size } = new Set(textNumbers(labels));
  if (size < labels.length) {
    screen.note(
      `${labels.length} labels are about ${size} texts. Labels of one text are not independent. ${consequence}`,
    );
  }
}

/**
 * Asks the model all labelled questions. Up to `AT_ONCE` questions about the same text share a request. Returns the
 * samples of each label, in the order of the labels.
 */
export async function askLabels(
  connection: Connection,
  {
    model,
    labels,
    calibrated,
    orders,
  }: { model: string; labels: readonly Label[]; calibrated: boolean; orders?: number },
): Promise<Sample[][]> {
  const samples = new Map<Label, Sample[]>();
  let asked = 0;
  const groups = Map.groupBy(labels, ({ path, input }) => JSON.stringify([path, input]));
  const requests = [...groups.values()].flatMap(requestsOf);
  const answers = mapInOrder(requests, { inflight: INFLIGHT, window: 2 * INFLIGHT }, async (some) => {
    const path = some[0]?.path ?? '';
    const order = orders === undefined || path === '/v1/extractions' ? {} : { orders };
    const body = { model, calibrated, ...order, ...requestOfLabels(some) };
    return { some, text: await (await connection.request(path, { body })).text() };
  });
  for await (const { some, text } of answers) {
    for (const [i, label] of some.entries()) samples.set(label, samplesOf([label], answerAt(text, i)));
    asked += some.length;
    if (isWatched()) process.stderr.write(`\r${asked} of ${labels.length} questions`);
  }
  if (isWatched()) process.stderr.write('\n');
  return labels.map((label) => samples.get(label) ?? []);
}

/** Returns the body with only the answer at an index, if its answers are a list. */
function answerAt(text: string, index: number): string {
  const body = JSON.parse(text);
  return JSON.stringify(Array.isArray(body.answers) ? { ...body, answers: [body.answers[index]] } : body);
}

/** Splits labels about one input into requests, in each of which a name occurs once. */
function requestsOf(labels: readonly Label[]): Label[][] {
  const requests: Label[][] = [];
  for (const label of labels) {
    const last = requests.at(-1);
    const fits =
      last &&
      last.length < AT_ONCE &&
      !(label.path !== '/v1/decisions' && last.some(({ name }) => name === label.name));
    if (fits) last.push(label);
    else requests.push([label]);
  }
  return requests;
}
