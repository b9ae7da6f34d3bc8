import { randomBytes } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../../lib/clock.ts';
import type { Page, PageRequest } from '../../../lib/contract/batches.ts';
import { messageOf } from '../../../lib/errors.ts';
import type { Batch, BatchError, BatchState, CreateBatchRequest, FileObject } from '../../../lib/schema/batches.ts';
import { SQLITE_BUSY, sqliteCode } from '../sqlite.ts';
import { UsageError } from '../usage-error.ts';

/** Holds a batch as it is stored. */
export interface StoredBatch {
  id: string;
  owner: string;
  status: BatchState;
  request: CreateBatchRequest;
  /** Hash of the request, to which its idempotency key belongs. */
  fingerprint: string;
  created: number;
  expires: number;
  /** Times in seconds of the states that it has reached. */
  times: Partial<Record<`${BatchState}_at`, number>>;
  total: number;
  errors: BatchError[];
  /** Numbers of lines with an answer and with an error, once it has ended. */
  counts?: { completed: number; failed: number };
  model?: string;
  outputFile?: string;
  errorFile?: string;
  usage?: Batch['usage'];
}

/** Holds the answer to one line of a batch: a line of its output or, if `ok` is false, of its error file. */
export interface LineResult {
  line: number;
  ok: boolean;
  text: string;
}

type Row = Record<string, unknown>;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS files (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, bytes INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER,
  filename TEXT NOT NULL, purpose TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS batches (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, status TEXT NOT NULL, created INTEGER NOT NULL, idempotency TEXT,
  body TEXT NOT NULL, UNIQUE (owner, idempotency)) STRICT;
CREATE TABLE IF NOT EXISTS results (
  batch TEXT NOT NULL, line INTEGER NOT NULL, ok INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (batch, line)) STRICT, WITHOUT ROWID`;

/** States after which nothing more happens to a batch. */
export const LAST_STATES: ReadonlySet<BatchState> = new Set(['failed', 'completed', 'expired', 'cancelled']);

/**
 * Keeps files and batches in a folder: their descriptions and the results of running batches in SQLite, the contents of
 * files beside it. A file exists once its row does, so a crash leaves only contents without a row, which the next start
 * removes.
 */
export class BatchStore {
  readonly #database: DatabaseSync;
  readonly #folder: string;
  readonly #clock: Clock;

  /** Opens the store of a folder. Throws if another process has it open. */
  constructor(folder: string, clock: Clock) {
    this.#folder = join(folder, 'files');
    this.#clock = clock;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const file = join(folder, 'batches.sqlite');
    try {
      this.#database = new DatabaseSync(file, { timeout: 1_000 });
      // A batch that was accepted must survive a loss of power, too.
      this.#database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL');
      this.#database.exec(SCHEMA);
    } catch (cause) {
      const why = sqliteCode(cause) === SQLITE_BUSY ? 'another server uses it' : messageOf(cause);
      throw new UsageError(`${file} cannot be opened: ${why}. Choose another --home, or start without --batches.`, {
        cause,
      });
    }
    const known = new Set(this.#all('SELECT id FROM files').map(({ id }) => String(id)));
    for (const name of readdirSync(this.#folder))
      if (!known.has(name)) rmSync(join(this.#folder, name), { force: true });
    const owned = new Set(this.#all('SELECT id FROM batches').map(({ id }) => String(id)));
    for (const { batch } of this.#all('SELECT DISTINCT batch FROM results')) {
      if (!owned.has(String(batch))) this.#run('DELETE FROM results WHERE batch = ?', String(batch));
    }
  }

  #all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#database.prepare(sql).all(...values);
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    this.#database.prepare(sql).run(...values);
  }

  /** Makes several changes at once or, if one fails, none. */
  transaction(change: () => void): void {
    this.#database.exec('BEGIN');
    try {
      change();
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  newId(prefix: string): string {
    return `${prefix}${randomBytes(16).toString('hex')}`;
  }

  /** Writes the content of a file that does not exist yet, until `addFile`; `limit` may end it with an error. */
  async writeContent(id: string, content: AsyncIterable<Uint8Array | string>, limit?: Transform): Promise<void> {
    const partial = join(this.#folder, `${id}.partial`);
    try {
      const target = createWriteStream(partial, { mode: 0o600, flush: true });
      if (limit) await pipeline(content, limit, target);
      else await pipeline(content, target);
      renameSync(partial, join(this.#folder, id));
      const folder = openSync(this.#folder, 'r');
      fsyncSync(folder);
      closeSync(folder);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Adds a file whose content is written. */
  addFile(file: FileObject, owner: string): void {
    this.#run(
      'INSERT INTO files (id, owner, bytes, created, expires, filename, purpose) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ...[file.id, owner, file.bytes, file.created_at, file.expires_at ?? null, file.filename, file.purpose],
    );
  }

  /** Returns a file that has not expired; null if there is none. */
  file(owner: string, id: string): FileObject | null {
    const sql = 'SELECT * FROM files WHERE id = ? AND owner = ? AND (expires IS NULL OR expires > ?)';
    const [row] = this.#all(sql, id, owner, this.now());
    return row ? fileOf(row) : null;
  }

  files(owner: string, { purpose, ...page }: PageRequest & { purpose?: string | undefined }): Page<FileObject> {
    const where = purpose === undefined ? '' : ' AND purpose = ?';
    const values = [owner, this.now(), ...(purpose === undefined ? [] : [purpose])];
    return this.#page('files', `owner = ? AND (expires IS NULL OR expires > ?)${where}`, values, page, fileOf);
  }

  #page<T>(
    table: string,
    where: string,
    values: SQLInputValue[],
    { after, limit, order = 'desc' }: PageRequest,
    read: (row: Row) => T,
  ): Page<T> {
    const [from] =
      after === undefined ? [] : this.#all(`SELECT rowid FROM ${table} WHERE id = ? AND ${where}`, after, ...values);
    const beyond = from ? ` AND rowid ${order === 'asc' ? '>' : '<'} ?` : '';
    const rows = this.#all(
      `SELECT * FROM ${table} WHERE ${where}${beyond} ORDER BY rowid ${order} LIMIT ?`,
      ...values,
      ...(from ? [Number(from.rowid)] : []),
      limit + 1,
    );
    return { data: rows.slice(0, limit).map(read), more: rows.length > limit };
  }

  /** Returns the bytes and number of files, of one owner or of all. */
  stored(owner?: string): { files: number; bytes: number } {
    const where = owner === undefined ? '' : ' WHERE owner = ?';
    const sql = `SELECT count(*) AS files, coalesce(sum(bytes), 0) AS bytes FROM files${where}`;
    const [row] = this.#all(sql, ...(owner === undefined ? [] : [owner]));
    return { files: Number(row?.files), bytes: Number(row?.bytes) };
  }

  pathOf(id: string): string {
    return join(this.#folder, id);
  }

  content(id: string): ReadableStream<Uint8Array> {
    return Readable.toWeb(createReadStream(this.pathOf(id))) as ReadableStream<Uint8Array>;
  }

  async deleteFile(id: string): Promise<void> {
    this.#run('DELETE FROM files WHERE id = ?', id);
    await rm(this.pathOf(id), { force: true });
  }

  /** Removes files that have expired and no open batch reads, and ended batches from before a time in seconds. */
  async removeExpired(before: number): Promise<void> {
    const read = new Set(this.open().map(({ request }) => request.input_file_id));
    const expired = this.#all('SELECT id FROM files WHERE expires <= ?', this.now());
    for (const { id } of expired) if (!read.has(String(id))) await this.deleteFile(String(id));
    const last = [...LAST_STATES].map((state) => `'${state}'`).join(', ');
    this.#run(`DELETE FROM batches WHERE created < ? AND status IN (${last})`, before);
  }

  addBatch(batch: StoredBatch, idempotency: string | undefined): void {
    this.#run(
      'INSERT INTO batches (id, owner, status, created, idempotency, body) VALUES (?, ?, ?, ?, ?, ?)',
      ...[batch.id, batch.owner, batch.status, batch.created, idempotency ?? null, JSON.stringify(batch)],
    );
  }

  /** Stores a change of a batch. */
  update(batch: StoredBatch): void {
    this.#run('UPDATE batches SET status = ?, body = ? WHERE id = ?', batch.status, JSON.stringify(batch), batch.id);
  }

  batch(id: string): StoredBatch | null {
    const [row] = this.#all('SELECT body FROM batches WHERE id = ?', id);
    return row ? batchOf(row) : null;
  }

  withKey(owner: string, idempotency: string): StoredBatch | null {
    const [row] = this.#all('SELECT body FROM batches WHERE owner = ? AND idempotency = ?', owner, idempotency);
    return row ? batchOf(row) : null;
  }

  batches(owner: string, page: PageRequest): Page<StoredBatch> {
    return this.#page('batches', 'owner = ?', [owner], page, batchOf);
  }

  /** Removes the ended batches of an owner but the `kept` newest. */
  forgetEnded(owner: string, kept: number): void {
    const last = [...LAST_STATES].map((state) => `'${state}'`).join(', ');
    const ended = `FROM batches WHERE owner = ? AND status IN (${last})`;
    this.#run(
      `DELETE ${ended} AND rowid <= (SELECT rowid ${ended} ORDER BY rowid DESC LIMIT 1 OFFSET ?)`,
      ...[owner, owner, kept],
    );
  }

  /** Returns the batches that are not ended, in the order in which they were made. */
  open(): StoredBatch[] {
    const last = [...LAST_STATES].map((state) => `'${state}'`).join(', ');
    return this.#all(`SELECT body FROM batches WHERE status NOT IN (${last}) ORDER BY rowid`).map(batchOf);
  }

  addResults(batch: string, results: readonly LineResult[]): void {
    const insert = this.#database.prepare('INSERT OR IGNORE INTO results (batch, line, ok, text) VALUES (?, ?, ?, ?)');
    // Does not wait for the disk, because lines that a loss of power takes are asked again, and other requests wait.
    this.#database.exec('PRAGMA synchronous=NORMAL');
    try {
      this.transaction(() => {
        for (const { line, ok, text } of results) insert.run(batch, line, ok ? 1 : 0, text);
      });
    } finally {
      this.#database.exec('PRAGMA synchronous=FULL');
    }
  }

  /** Returns the numbers of the lines that have a result. */
  answered(batch: string): Set<number> {
    return new Set(this.#all('SELECT line FROM results WHERE batch = ?', batch).map(({ line }) => Number(line)));
  }

  /** Returns the bytes of the answers to a batch that are stored. */
  resultBytes(batch: string): number {
    const sql = 'SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) AS bytes FROM results WHERE batch = ?';
    return Number(this.#all(sql, batch)[0]?.bytes);
  }

  counts(batch: string): { completed: number; failed: number } {
    const sql = 'SELECT coalesce(sum(ok), 0) AS completed, count(*) AS lines FROM results WHERE batch = ?';
    const [row] = this.#all(sql, batch);
    return { completed: Number(row?.completed), failed: Number(row?.lines) - Number(row?.completed) };
  }

  /** Reads the results of a batch in the order of its lines. */
  *results(batch: string, ok: boolean): Generator<LineResult> {
    const sql = 'SELECT line, text FROM results WHERE batch = ? AND ok = ? ORDER BY line';
    for (const row of this.#database.prepare(sql).iterate(batch, ok ? 1 : 0)) {
      yield { line: Number(row.line), ok, text: String(row.text) };
    }
  }

  deleteResults(batch: string): void {
    this.#run('DELETE FROM results WHERE batch = ?', batch);
  }

  close(): void {
    this.#database.close();
  }
}

function batchOf({ body }: Row): StoredBatch {
  return JSON.parse(String(body));
}

function fileOf({ id, bytes, created, expires, filename, purpose }: Row): FileObject {
  return {
    id: String(id),
    object: 'file',
    bytes: Number(bytes),
    created_at: Number(created),
    ...(expires === null ? {} : { expires_at: Number(expires) }),
    filename: String(filename),
    purpose: purpose === 'batch' ? 'batch' : 'batch_output',
    status: 'processed',
  };
}
