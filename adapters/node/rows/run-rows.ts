import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import { systemClock } from '../../../lib/clock.ts';
import { AssayError, type ErrorCode, messageOf } from '../../../lib/errors.ts';
import { joinMembers, membersOf } from '../../../lib/json/members.ts';
import { mapInOrder } from '../../../lib/rows/map-in-order.ts';
import { OF_SERVER, RetryLater } from '../../../lib/rows/retry-later.ts';
import { ModelList } from '../../../lib/schema/model-list.ts';
import { NoServerError } from '../cli/exit-code.ts';
import type { Connection } from '../cli/request.ts';
import { COMMAND } from '../command.ts';
import { UsageError } from '../usage-error.ts';
import {
  ASKED,
  type AskedColumn,
  type AskedKind,
  CUT_COLUMN,
  ERROR_COLUMN,
  flatColumns,
  takenColumn,
} from './answer-columns.ts';
import { Checkpoint, type RowEnd, STATUS } from './checkpoint.ts';
import { type DataRow, formatOf, parquetColumns, readRows } from './read-rows.ts';
import { type OutputRow, writeRows } from './write-rows.ts';

/** Describes a run: the same questions about every row of a file. */
export interface RowsRun {
  kind: AskedKind;
  asked: readonly AskedColumn[];
  /** Members of the request without its model and state, with their JSON texts. */
  request: ReadonlyMap<string, string>;
  /** Files of the rows and of the output. */
  rows: string;
  out: string;
  /** Column with the text that is asked about; absent: the row as JSON. */
  stateColumn?: string | undefined;
  /** Number of rows to ask about: the first ones (`limit`), or some that are spread over the file (`sample`). */
  limit?: number | undefined;
  sample?: number | undefined;
  /** Maximum number of requests at once. */
  concurrency: number;
  /** True to forget an earlier run with the same output. */
  restart: boolean;
}

/** Counts the rows of a run. */
export interface RowCounts {
  total: number;
  /** Rows that have an end, those of earlier commands with the same run included. */
  done: number;
  /** Rows that had an end when this command began. */
  before: number;
  /** Rows that are errors. */
  errors: number;
  /** Rows with an answer that was cut. */
  cut: number;
}

/** Times that a request is sent when the server fails to answer it, before the row becomes an error. */
const ATTEMPTS = 3;
/** Milliseconds that a run waits for a server that has gone, such as one that restarts. */
const MOST_ABSENT_MS = 60_000;
const ABSENT_STEP_MS = 500;

/**
 * Asks about the rows of a file and writes the answers to another one, in the order of the rows. Answers are stored as
 * they come, so the same run, when it was interrupted at any moment, resumes where it stopped.
 *
 * @param progress called whenever a row has an end
 * @throws UsageError for files that cannot be used, or a checkpoint of another run
 * @throws AssayError an error that concerns every row, such as an unknown key or invalid questions
 * @throws NoServerError if the server has been gone for a minute
 */
export async function runRows(
  run: RowsRun,
  connection: Connection,
  model: string,
  { progress, signal }: { progress(counts: RowCounts): void; signal: AbortSignal },
): Promise<RowCounts> {
  const format = formatOf(run.out, '--out');
  await checkFiles(run);
  const file = `${run.out}.assay.sqlite`;
  if (run.restart) for (const end of ['', '-wal', '-shm']) await rm(`${file}${end}`, { force: true });
  if (existsSync(run.out) && !existsSync(file)) {
    if (!run.restart)
      throw new UsageError(`${run.out} exists. Remove it, choose another --out, or add --restart to replace it.`);
  }
  const input = await examine(run);
  const answers = await answering(connection, model);
  if (!answers)
    throw new AssayError('model_not_loaded', `The model ${model} is not loaded. Load it: ${COMMAND} load ${model}`);
  const identity = { model: answers.identity, ...identityOf(run), input: input.sha256 };
  const checkpoint = new Checkpoint(file, identity);
  try {
    const wanted = selection(run, input);
    const total = wanted?.size ?? Math.min(input.rows, run.limit ?? input.rows);
    if (checkpoint.complete) {
      const { refused, failed } = checkpoint.counts();
      if (refused + failed === 0 && existsSync(run.out))
        return { total, done: total, before: total, errors: 0, cut: 0 };
      checkpoint.forget({ refused: true });
    } else checkpoint.forget({ refused: false });
    const stored = checkpoint.counts();
    const before = stored.answered + stored.cut + stored.refused;
    const counts = { total, done: before, before, errors: stored.refused, cut: stored.cut };
    progress(counts);
    const asking = new Asking(run, connection, { name: model, ...answers }, signal);
    const open = openRows(run, wanted, (n) => checkpoint.find(n) === null);
    const bounds = { inflight: run.concurrency, window: 16 * run.concurrency };
    const ends = mapInOrder(open, bounds, async ({ n, row }) => {
      const end = 'problem' in row ? refusal(new AssayError('malformed_json', row.problem)) : await asking.end(row);
      checkpoint.add(n, end);
      counts.done++;
      if (end.status === STATUS.cut) counts.cut++;
      if (end.status >= STATUS.refused) counts.errors++;
      progress(counts);
    });
    for await (const _ of ends) signal.throwIfAborted();
    checkpoint.commit();
    await write(run, format, wanted, checkpoint, input);
    return counts;
  } finally {
    checkpoint.commit();
    checkpoint.close();
  }
}

async function checkFiles({ rows, out }: RowsRun): Promise<void> {
  const source = await realpath(rows).catch(() => null);
  if (source === null) throw new UsageError(`${resolve(rows)} does not exist.`);
  const target = await realpath(out).catch(() => resolve(out));
  if (source === target) throw new UsageError('--out must be another file than --rows.');
  const folder = await stat(dirname(target)).catch(() => null);
  if (!folder?.isDirectory()) throw new UsageError(`${dirname(target)} is not a folder. Make it first.`);
}

/** Holds what a first reading of the input found. */
interface Input {
  rows: number;
  sha256: string;
  /** Time of the last change of the file, in milliseconds. */
  changed: number;
}

/** Reads the whole input once. Throws `UsageError` if it has no row, or a column that an answer needs. */
async function examine(run: RowsRun): Promise<Input> {
  const { mtimeMs: changed } = await stat(run.rows);
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(run.rows)) hash.update(chunk as Buffer);
  const flat = formatOf(run.out, '--out') !== 'jsonl';
  let rows = 0;
  let [known, problem] = [false, ''];
  for await (const row of readRows(run.rows)) {
    rows++;
    if ('problem' in row) {
      problem ||= row.problem;
      continue;
    }
    known ||= run.stateColumn === undefined || row.columns.has(run.stateColumn);
    const taken = takenColumn(row.columns.keys(), run.asked, { flat, kind: run.kind });
    if (taken !== undefined) {
      throw new UsageError(
        `The column ${taken} of ${run.rows} has the name of a column of the answers. Rename one of them.`,
      );
    }
  }
  if (rows === 0) throw new UsageError(`${run.rows} has no rows.`);
  if (!known) {
    throw new UsageError(
      problem ? `${run.rows}: ${problem}` : `No row of ${run.rows} has the column ${run.stateColumn} (--state-column).`,
    );
  }
  return { rows, sha256: hash.digest('hex'), changed };
}

/** Returns what determines the answers of a run, besides the model and the input. */
function identityOf(run: RowsRun): Record<'tasks' | 'rows to ask', string> {
  const tasks = createHash('sha256').update(`${run.kind}${joinMembers(run.request)}${run.stateColumn ?? ''}`);
  const { limit = null, sample = null } = run;
  return { tasks: tasks.digest('hex'), 'rows to ask': JSON.stringify({ limit, sample }) };
}

/** Identifies the model that answers a run: by its id, the hash of its files, and its calibration. */
interface Answering {
  id: string;
  identity: string;
}

/** Returns the model that a name means, which may be another name of the loaded one; null while it is not loaded. */
async function answering(connection: Connection, name: string): Promise<Answering | null> {
  const { data } = v.parse(ModelList, await (await connection.request('/v1/models')).json());
  const model = data.find(({ id }) => id === name) ?? data.find(({ status }) => status === 'active');
  if (model?.status !== 'active') return null;
  const { id, fingerprint = null, calibration = null } = model;
  return { id, identity: JSON.stringify([id, fingerprint, calibration]) };
}

/** Returns the numbers of the rows of a sample, which is the same for the same input; null: there is no sample. */
function selection({ sample }: RowsRun, { rows, sha256 }: Input): ReadonlySet<number> | null {
  if (sample === undefined || sample >= rows) return null;
  // Each row gets a number from a hash; the sample has the rows with the lowest.
  const rank = (n: number) => createHash('sha256').update(`${sha256} ${n}`).digest().readUIntBE(0, 6);
  const ranked = Array.from({ length: rows }, (_, n): [rank: number, n: number] => [rank(n), n]);
  return new Set(
    ranked
      .sort(([a, i], [b, j]) => a - b || i - j)
      .slice(0, sample)
      .map(([, n]) => n),
  );
}

/** Reads the rows that a run asks about, with their numbers. */
async function* openRows(
  { rows, limit = Number.POSITIVE_INFINITY }: RowsRun,
  wanted: ReadonlySet<number> | null,
  isOpen: (n: number) => boolean,
): AsyncGenerator<{ n: number; row: DataRow }> {
  let n = -1;
  for await (const row of readRows(rows)) {
    if (++n >= limit) return;
    if ((wanted?.has(n) ?? true) && isOpen(n)) yield { n, row };
  }
}

async function write(
  run: RowsRun,
  format: ReturnType<typeof formatOf>,
  wanted: ReadonlySet<number> | null,
  checkpoint: Checkpoint,
  { changed }: Input,
): Promise<void> {
  const { mtimeMs } = await stat(run.rows);
  if (mtimeMs !== changed)
    throw new UsageError(`${run.rows} has changed during the run. Restore it, or use --restart.`);
  const flat = format !== 'jsonl';
  async function* rows(): AsyncGenerator<OutputRow> {
    for await (const { n, row } of openRows(run, wanted, () => true)) {
      const source = 'problem' in row ? [] : row.columns;
      const end = checkpoint.find(n);
      if (!end) throw new AssayError('internal_error', `Row ${n} has no answer. Run the same command again.`);
      yield {
        columns: new Map([...source, ...answerColumns(run, end, flat)]),
        ...('values' in row ? { values: row.values } : {}),
      };
    }
  }
  const parquet = format === 'parquet' && formatOf(run.rows, '--rows') === 'parquet';
  const partial = `${run.out}.partial`;
  await writeRows(partial, format, rows, parquet ? await parquetColumns(run.rows) : undefined);
  await rename(partial, run.out);
  const folder = await open(dirname(resolve(run.out)), 'r').catch(() => null);
  await folder?.sync().catch(() => undefined);
  await folder?.close();
  checkpoint.finish();
}

/** Returns the columns that the end of a row adds to it, with their JSON texts. */
function answerColumns({ kind, asked }: RowsRun, { status, body }: RowEnd, flat: boolean): [string, string][] {
  if (status >= STATUS.refused) {
    if (!flat) return [[ERROR_COLUMN, body]];
    const { code, message } = JSON.parse(body) as { code: string; message: string };
    return [[ERROR_COLUMN, JSON.stringify(`${code}: ${message}`)]];
  }
  const answers = membersOf(body);
  const cut: [string, string][] = status === STATUS.cut && kind === 'tasks' ? [[CUT_COLUMN, '"length"']] : [];
  return [
    ...asked.flatMap((one): [string, string][] => {
      const json = answers.get(one.name) ?? 'null';
      return flat && json !== 'null' ? flatColumns(kind, one, json) : [[one.name, json]];
    }),
    ...cut,
    ...(flat ? ([[ERROR_COLUMN, 'null']] as [string, string][]) : []),
  ];
}

/** Errors that concern every row, so they end the run. */
const OF_ALL: ReadonlySet<ErrorCode> = new Set([
  'missing_api_key',
  'invalid_api_key',
  'model_not_allowed',
  'forbidden_origin',
  'model_not_found',
  'route_not_found',
  'method_not_allowed',
  'disk_full',
]);

/** Sends the requests of a run, and waits where that helps. */
class Asking {
  readonly #run: RowsRun;
  readonly #connection: Connection;
  readonly #model: Answering & { name: string };
  readonly #signal: AbortSignal;
  readonly #later = new RetryLater(systemClock);
  /** Ends when a server that had gone answers again; null while it answers. */
  #return: Promise<void> | null = null;

  constructor(run: RowsRun, connection: Connection, model: Answering & { name: string }, signal: AbortSignal) {
    this.#run = run;
    this.#connection = connection;
    this.#model = model;
    this.#signal = signal;
  }

  /** Returns the end of a row. Throws an error that concerns every row. */
  async end({ columns }: { columns: ReadonlyMap<string, string> }): Promise<RowEnd> {
    const { kind, stateColumn, request } = this.#run;
    const { path, state } = ASKED[kind];
    const own = stateColumn === undefined ? joinMembers(columns) : columns.get(stateColumn);
    if (own === undefined || own === 'null') {
      return refusal(new AssayError('missing_input', `The row has no ${stateColumn}.`, { param: stateColumn ?? '' }));
    }
    // The context of tasks is a text, and so is a state that is neither an object nor a list.
    const text = /^["{[]/.test(own) && kind !== 'tasks' ? own : own.startsWith('"') ? own : JSON.stringify(own);
    const json = joinMembers([['model', JSON.stringify(this.#model.name)], ...request, [state, text]]);
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.#later.run(() => this.#send(path, json), this.#signal);
        return this.#ended(await response.text());
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!(error instanceof AssayError) || OF_ALL.has(error.code) || this.#isOfQuestions(error)) throw error;
        if (!OF_SERVER.has(error.code)) return refusal(error);
        if (attempt === ATTEMPTS) return { ...refusal(error), status: STATUS.failed };
        await systemClock.sleep(ABSENT_STEP_MS * attempt, this.#signal);
      }
    }
  }

  /** Tells whether an error is one of the questions, which all rows share. */
  #isOfQuestions({ code, param }: AssayError): boolean {
    return code !== 'input_too_long' && [...this.#run.request.keys(), 'model'].some((name) => param?.startsWith(name));
  }

  #ended(text: string): RowEnd {
    const body = membersOf(text);
    if (JSON.parse(body.get('model') ?? '""') !== this.#model.id) throw otherModel();
    const answers = body.get(ASKED[this.#run.kind].answers);
    if (answers === undefined) throw new AssayError('internal_error', 'The server answered without answers.');
    const cut =
      body.get('choices')?.includes('"finish_reason":"length"') || /"(x_cut":true|complete":false)/.test(answers);
    return { status: cut ? STATUS.cut : STATUS.answered, body: answers };
  }

  /** Sends a request, again when a server that has gone is back. */
  async #send(path: string, json: string): Promise<Response> {
    for (;;) {
      if (this.#return) await this.#return;
      this.#signal.throwIfAborted();
      try {
        return await this.#connection.request(path, { json, priority: 'batch', signal: this.#signal });
      } catch (error) {
        if (!isAbsence(error)) throw error;
        this.#return ??= this.#waitForServer(error).finally(() => {
          this.#return = null;
        });
      }
    }
  }

  /** Waits until the server answers again with the same model. Throws the last error after `MOST_ABSENT_MS`. */
  async #waitForServer(first: unknown): Promise<void> {
    if (this.#connection.url === null) throw first;
    const until = performance.now() + MOST_ABSENT_MS;
    for (let last = first; ; ) {
      if (performance.now() > until) throw last;
      await systemClock.sleep(ABSENT_STEP_MS, this.#signal);
      this.#signal.throwIfAborted();
      try {
        const found = await answering(this.#connection, this.#model.name);
        if (found === null) continue;
        if (found.identity !== this.#model.identity) throw otherModel();
        return;
      } catch (error) {
        if (!isAbsence(error)) throw error;
        last = error;
      }
    }
  }
}

/** Tells whether an error means that there is no server, or none with a model yet. */
function isAbsence(error: unknown): boolean {
  return error instanceof NoServerError || (error instanceof AssayError && error.code === 'model_not_loaded');
}

function otherModel(): UsageError {
  return new UsageError(
    'The server answers with another model than the run began with. Load that model, then run the same command again.',
  );
}

/** Returns the end of a row that cannot be answered. */
function refusal(error: AssayError): RowEnd {
  const { code, param } = error;
  return {
    status: STATUS.refused,
    body: JSON.stringify({ code, message: messageOf(error), ...(param === undefined ? {} : { param }) }),
  };
}
