import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { AssayError, messageOf } from '../../../lib/errors.ts';
import { COMMAND } from '../command.ts';
import { SQLITE_BUSY, SQLITE_FULL, sqliteCode } from '../sqlite.ts';
import { UsageError } from '../usage-error.ts';

/** Describes how a row ended: answered, refused for good, or failed in a way that may pass. */
export const STATUS = { answered: 0, cut: 1, refused: 2, failed: 3 } as const;
export type RowStatus = (typeof STATUS)[keyof typeof STATUS];

/** Holds the end of a row: the JSON text of its answers, or of its error. */
export interface RowEnd {
  status: RowStatus;
  body: string;
}

/** Rows after which, and milliseconds after which, the ends of rows are written to the disk. */
const COMMIT_ROWS = 100;
const COMMIT_MS = 1_000;

/**
 * Stores the ends of the rows of a run beside its output, so that the same command resumes a run that was killed. A
 * process has a checkpoint alone; a second one is refused.
 */
export class Checkpoint {
  readonly #database: DatabaseSync;
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  #pending = new Map<number, RowEnd>();
  #timer: NodeJS.Timeout | null = null;

  /**
   * Opens the checkpoint of a run, or creates it.
   *
   * @param identity what determines the answers of the run, by name
   * @throws UsageError if the checkpoint is that of a run with another identity, is in use, or is damaged
   */
  constructor(file: string, identity: Readonly<Record<string, string>>) {
    try {
      this.#database = new DatabaseSync(file, { timeout: 500 });
      // The lock ends with the process, however that ends.
      this.#database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL');
      this.#database.exec(
        'CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;' +
          'CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, status INTEGER NOT NULL, body TEXT NOT NULL) STRICT',
      );
    } catch (cause) {
      throw new UsageError(
        sqliteCode(cause) === SQLITE_BUSY
          ? `Another command is writing this output. Wait for it, or choose another --out.`
          : `The checkpoint ${file} cannot be used (${messageOf(cause)}). Remove it to begin anew.`,
        { cause },
      );
    }
    this.#find = this.#database.prepare('SELECT status, body FROM rows WHERE n = ?');
    this.#insert = this.#database.prepare('INSERT OR REPLACE INTO rows (n, status, body) VALUES (?, ?, ?)');
    this.#identify(file, identity);
  }

  #identify(file: string, identity: Readonly<Record<string, string>>): void {
    const stored = new Map(
      this.#database
        .prepare('SELECT key, value FROM meta')
        .all()
        .map(({ key, value }) => [String(key), String(value)]),
    );
    if (stored.size === 0) {
      const set = this.#database.prepare('INSERT INTO meta (key, value) VALUES (?, ?)');
      this.#database.exec('BEGIN');
      for (const [key, value] of Object.entries(identity)) set.run(key, value);
      this.#database.exec('COMMIT');
      return;
    }
    const other = Object.keys(identity).filter((key) => stored.get(key) !== identity[key]);
    if (other.length === 0) return;
    this.close();
    throw new UsageError(
      `${file} is the checkpoint of another run: ${other.join(' and ')} differ${other.length === 1 ? 's' : ''}. ` +
        `Repeat that command, choose another --out, or begin anew with --restart (${COMMAND} run --help).`,
    );
  }

  /** Tells whether the output of the run was written, with the ends of all rows. */
  get complete(): boolean {
    return this.#database.prepare("SELECT 1 FROM meta WHERE key = 'complete'").get() !== undefined;
  }

  /** Returns the end of a row; null if it has none yet. */
  find(n: number): RowEnd | null {
    const pending = this.#pending.get(n);
    if (pending) return pending;
    const found = this.#find.get(n);
    return found ? { status: Number(found.status) as RowStatus, body: String(found.body) } : null;
  }

  /** Stores the end of a row: on the disk within `COMMIT_MS`, with others. */
  add(n: number, end: RowEnd): void {
    this.#pending.set(n, end);
    if (this.#pending.size >= COMMIT_ROWS) this.commit();
    else {
      this.#timer ??= setTimeout(() => {
        try {
          this.commit();
        } catch {
          // The rows are still pending, and the next commit reports what is wrong.
        }
      }, COMMIT_MS);
    }
  }

  /** Writes the ends of rows that are only in memory to the disk. */
  commit(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#pending.size === 0) return;
    this.#database.exec('BEGIN');
    try {
      for (const [n, { status, body }] of this.#pending) this.#insert.run(n, status, body);
      this.#database.exec('COMMIT');
    } catch (cause) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      if (sqliteCode(cause) !== SQLITE_FULL) throw cause;
      throw new AssayError('disk_full', 'The disk is full. Free space, then run the same command again to resume.', {
        cause,
      });
    }
    this.#pending = new Map();
  }

  /** Forgets the rows that failed; with `refused`, those that were refused, too. They are asked again. */
  forget({ refused }: { refused: boolean }): void {
    this.#database.prepare('DELETE FROM rows WHERE status >= ?').run(refused ? STATUS.refused : STATUS.failed);
    this.#database.exec("DELETE FROM meta WHERE key = 'complete'");
  }

  /** Counts the rows of each status. */
  counts(): Record<keyof typeof STATUS, number> {
    const counted = this.#database.prepare('SELECT status, count(*) AS rows FROM rows GROUP BY status').all();
    const of = (status: RowStatus) => Number(counted.find((row) => row.status === status)?.rows ?? 0);
    return {
      answered: of(STATUS.answered),
      cut: of(STATUS.cut),
      refused: of(STATUS.refused),
      failed: of(STATUS.failed),
    };
  }

  /** Records that the output was written. Its rows are kept only if some of them may be asked again. */
  finish(): void {
    const { refused, failed } = this.counts();
    this.#database.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('complete', '1')");
    if (refused + failed > 0) return;
    this.#database.exec('DELETE FROM rows');
    this.#database.exec('VACUUM');
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#database.close();
  }
}
