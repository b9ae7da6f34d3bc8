import type { Command } from 'commander';
import * as v from 'valibot';
import { membersOf, splitMembers } from '../../../../lib/json/members.ts';
import { RunTasksResponse } from '../../../../lib/schema/task-response.ts';
import { CUT_TASKS_HEADER } from '../../../../lib/tasks/cut-tasks.ts';
import { COMMAND, shellWord } from '../../command.ts';
import type { AskedColumn } from '../../rows/answer-columns.ts';
import { type RowCounts, type RowsRun, runRows } from '../../rows/run-rows.ts';
import { UsageError } from '../../usage-error.ts';
import { type AskFlags, askFlags, sharedFields, warnIfCut, withModel } from '../ask.ts';
import { EXIT, InterruptedError } from '../exit-code.ts';
import { once, wholeNumber } from '../parse-flags.ts';
import { type Describe, progressView } from '../progress.ts';
import {
  type InputFlags,
  inputFlags,
  isJsonText,
  readContext,
  readJsonInput,
  readJsonText,
  readMedia,
} from '../read-input.ts';
import { screen } from '../screen.ts';

interface RowFlags {
  rows?: string;
  out?: string;
  stateColumn?: string;
  limit?: number;
  sample?: number;
  concurrency?: number;
  restart?: boolean;
}

type RunFlags = AskFlags & InputFlags & RowFlags;

/** Maximum number of rows, and of requests at once. */
const MOST_ROWS = 1_000_000_000;
const MOST_CONCURRENT = 256;
const CONCURRENT = 16;

const TOKENS = 1024;

/** Adds the command `assay run`. */
export function addRun(program: Command): void {
  askFlags(
    inputFlags(
      program
        .command('run')
        .description(
          'Run a file of tasks about one text, image or recording, in one request; or about each row of a file.',
        )
        .argument('<tasks.json>', 'a list of tasks, or a whole request of POST /v1/tasks; - is standard input'),
    )
      .option('--rows <file>', 'ask about each row of a file: .jsonl, .csv, .tsv or .parquet', once)
      .option('--out <file>', 'with --rows: file for the rows with their answers, in one of these formats', once)
      .option('--state-column <name>', 'with --rows: column with the text (default: the whole row, as JSON)', once)
      .option('--limit <number>', 'with --rows: ask about the first rows only', wholeNumber(1, MOST_ROWS))
      .option(
        '--sample <number>',
        'with --rows: ask about this many rows from all of the file',
        wholeNumber(1, MOST_ROWS),
      )
      .option(
        '--concurrency <number>',
        `with --rows: most requests at once (default: ${CONCURRENT})`,
        wholeNumber(1, MOST_CONCURRENT),
      )
      .option('--restart', 'with --rows: replace the output, and forget what was answered before'),
  )
    .addHelpText('after', RUN_HELP)
    .action(async (file: string, flags: RunFlags) => {
      if (flags.rows !== undefined) return runOverRows(file, flags.rows, flags);
      const alone = ROW_FLAGS.find(([name]) => flags[name] !== undefined);
      if (alone) throw new UsageError(`${alone[1]} needs --rows. ${COMMAND} run --help shows an example.`);
      const content = await readJsonInput(file, 'The list of tasks');
      const name = isJsonText(file) ? 'The request' : file;
      const request = Array.isArray(content) ? { tasks: content } : content;
      if (typeof request !== 'object' || request === null || !('tasks' in request)) {
        throw new UsageError(
          `${name} must contain a list of tasks or an object with "tasks". ${COMMAND} run --help shows an example.`,
        );
      }
      const hasInput = 'context' in request || 'messages' in request;
      if (hasInput && (flags.context !== undefined || flags.file !== undefined)) {
        throw new UsageError(`${name} has a text already. Remove it there, or leave out --context and --file.`);
      }
      const input = hasInput ? {} : { context: await readContext(flags, `${COMMAND} run ${shellWord(file)}`) };
      const media = await readMedia(flags);
      const named = 'model' in request ? request.model : undefined;
      if (named !== undefined && typeof named !== 'string') throw new UsageError(`${name}: model must be a string.`);
      const asked = flags.model ?? named;
      const { answer, cut } = await withModel(
        { ...flags, ...(asked === undefined ? {} : { model: asked }) },
        async (connection, model) => {
          // A flag overrides the field of the file.
          const defaults =
            'max_output_tokens' in request && flags.maxOutputTokens === undefined
              ? request.max_output_tokens
              : undefined;
          const body = {
            ...request,
            ...input,
            ...media,
            ...sharedFields(flags, TOKENS),
            ...(defaults === undefined ? {} : { max_output_tokens: defaults }),
            model,
          };
          const response = await connection.request('/v1/tasks', { body });
          return { answer: await response.text(), cut: response.headers.get(CUT_TASKS_HEADER) };
        },
      );
      const response = v.parse(v.pipe(v.string(), v.parseJson(), RunTasksResponse), answer);
      // Prints the received JSON text itself, because parsing it would move members named by numbers, such as "10".
      screen.line(flags.json ? answer : (response.choices[0]?.message.content ?? ''));
      warnIfCut(response, cut);
    });
}

const ROW_FLAGS = [
  ['out', '--out'],
  ['stateColumn', '--state-column'],
  ['limit', '--limit'],
  ['sample', '--sample'],
  ['concurrency', '--concurrency'],
  ['restart', '--restart'],
] as const;

/** Asks the questions of a file about each row of another file. */
async function runOverRows(file: string, rows: string, flags: RunFlags): Promise<void> {
  const { out, limit, sample, stateColumn, concurrency = CONCURRENT, restart = false } = flags;
  if (out === undefined) throw new UsageError('--rows needs --out: the file for the rows with their answers.');
  const other = (['context', 'file', 'image', 'audio'] as const).find((name) => flags[name] !== undefined);
  if (other) throw new UsageError(`--${other} cannot be used with --rows: each row is asked about alone.`);
  if (limit !== undefined && sample !== undefined) throw new UsageError('Use only one of --limit and --sample.');
  const source = await readJsonText(file, 'The list of tasks');
  const name = isJsonText(file) ? 'The request' : file;
  const questions = questionsOf(source, name);
  const request = new Map(questions.request);
  const shared = sharedFields(flags, TOKENS);
  if (questions.kind !== 'tasks') {
    const unusable = (['temperature', 'language'] as const).find((flag) => flags[flag] !== undefined);
    if (unusable) throw new UsageError(`--${unusable} is for tasks only, and ${name} has ${questions.kind}.`);
  }
  for (const [field, value] of Object.entries(shared)) {
    const given = field !== 'max_output_tokens' || flags.maxOutputTokens !== undefined;
    if (given || (questions.kind === 'tasks' && !request.has(field))) request.set(field, JSON.stringify(value));
  }
  const named: unknown = JSON.parse(request.get('model') ?? 'null');
  if (named !== null && typeof named !== 'string') throw new UsageError(`${name}: model must be a string.`);
  request.delete('model');
  const model = flags.model ?? named;
  const view = progressView(flags.json === true, rowMoments());
  const stopping = new AbortController();
  const stop = () => stopping.abort(new InterruptedError('Stopped. Run the same command again to continue.'));
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const run = { ...questions, request, rows, out, stateColumn, limit, sample, concurrency, restart };
    const counts = await withModel({ ...flags, ...(model === null ? {} : { model }) }, (connection, model) =>
      runRows(run, connection, model, { progress: (counts) => view.show(counts), signal: stopping.signal }),
    );
    view.end();
    const { total, errors, cut } = counts;
    if (flags.json) screen.json({ out, rows: total, errors, cut });
    else screen.note(`${out} has ${total} row${total === 1 ? '' : 's'}, ${errors} of them with an error.`);
    if (cut > 0 && !flags.json) {
      screen.note(
        `The answers of ${cut} rows were cut. Raise the token limit with --max-output-tokens, and use --restart.`,
      );
    }
    if (errors > 0) process.exitCode = EXIT.no;
  } finally {
    view.end();
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/** Returns the questions of a file with the other members of their request. */
function questionsOf(text: string, name: string): Pick<RowsRun, 'kind' | 'asked' | 'request'> {
  const list = text.trimStart().startsWith('[');
  const request = list ? new Map([['tasks', text]]) : splitMembers(text);
  const kinds = (['fields', 'tasks', 'questions'] as const).filter((one) => request.has(one));
  // A request for fields may ask questions, too.
  const kind = kinds[0];
  if (!kind || (kinds.includes('tasks') && kinds.length > 1)) {
    throw new UsageError(
      `${name} must contain a list of tasks, or an object with "tasks", "questions" or "fields". ${COMMAND} run --help shows an example.`,
    );
  }
  const own = ['context', 'messages', 'state', 'images', 'audio', 'assets'].find((member) => request.has(member));
  if (own !== undefined) throw new UsageError(`${name} has ${own} already. Remove it there: the rows are asked about.`);
  const asked = kinds.flatMap((one): AskedColumn[] => {
    const value: unknown = JSON.parse(request.get(one) ?? 'null');
    if (Array.isArray(value)) return value.map((task) => ({ name: task?.name ?? task?.id, type: task?.type }));
    return [...membersOf(request.get(one) ?? '{}')].map(([id, json]) => ({ name: id, type: JSON.parse(json)?.type }));
  });
  const [bad] = asked.filter(({ name: id, type }) => typeof id !== 'string' || typeof type !== 'string');
  if (bad) throw new UsageError(`${name}: each of the ${kind} needs a name and a type.`);
  return { kind, asked, request };
}

const RUN_HELP = `
Prints the results by name, as one JSON object in the order of the tasks.

With --rows, the file may also have "questions" (POST /v1/systemone) or "fields" (POST /v1/extractions). A row that
cannot be answered gets an error. Run the same command again to continue after an interruption, or to ask about rows
with errors again; the state is in <out>.assay.sqlite.

Examples:
  $ cat tasks.json
  [{ "type": "decide", "name": "urgent", "question": "Is this urgent?", "options": ["yes", "no"] },
   { "type": "extract", "name": "who", "instruction": "The sender", "keys": ["name", "company"] }]
  $ assay run tasks.json < mail.txt
  $ assay run tasks.json --file mail.txt | jq -r .urgent.value
  $ assay run tasks.json --rows mails.csv --state-column body --out answers.csv
  $ assay run fields.json --rows contracts.parquet --state-column text --out fields.parquet --sample 50`;

/** Returns a function that describes a run over rows. */
export function rowMoments(): Describe<RowCounts> {
  let begin: number | undefined;
  return (counts, now) => {
    begin ??= now;
    const words = describe(counts, now - begin);
    return { stage: '', share: counts.done / counts.total, words, line: words };
  };
}

/** Describes how far a run is after some milliseconds: `120 of 500 rows, 24.0/s, 16 s left, 2 errors`. */
function describe({ total, done, before, errors }: RowCounts, ms: number): string {
  const rate = ms > 0 ? ((done - before) * 1000) / ms : 0;
  const left = rate > 0 ? `, ${rate.toFixed(1)}/s, ${duration((total - done) / rate)} left` : '';
  const wrong = errors > 0 ? `, ${errors} error${errors === 1 ? '' : 's'}` : '';
  return `${done} of ${total} rows${left}${wrong}`;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
