import { accessSync, closeSync, constants, openSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../lib/clock.ts';
import { systemCode } from './disk-error.ts';
import { dirname } from './paths.ts';

/**
 * Locks between processes. Node has no API for file locks, but its SQLite uses them on every system. The kernel
 * releases them when the process dies, so even after a kill -9 there is no stale lock.
 */

/** Represents a lock that is held until it is released or discarded, or the process ends. */
export interface HeldLock {
  release(): void;
  /** Releases the lock and removes its file. A process that waits for the lock creates the file again. */
  discard(): void;
}

/**
 * Acquires a lock without waiting. Returns null if another process (or another holder in this one) holds it, or has
 * just removed its directory.
 *
 * @throws the file system's error if the file cannot be opened, or if this account may only read it although it may
 *   write to its directory
 */
export function tryLock(file: string): HeldLock | null {
  for (;;) {
    const before = inodeOf(file);
    const database = openExclusively(file);
    if (!database) return null;
    // The last holder may have discarded the file after it was opened here; other processes would then lock a different
    // file of the same name. A new file's inode is unknown before it is opened, so a new file is locked twice.
    if (before !== undefined && inodeOf(file) === before) return heldLock(file, database);
    database.close();
  }
}

const inodeOf = (file: string): bigint | undefined => statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;

function openExclusively(file: string): DatabaseSync | null {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    // With the journal in memory nothing is written: the file stays empty, and only its lock is used.
    database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
    checkExclusive(file);
    return database;
  } catch (error) {
    database?.close();
    // A cast: `node:sqlite` adds this code to its errors, and any other value has none.
    const { errcode } = error as { errcode?: number };
    if (errcode === SQLITE_BUSY || (errcode === SQLITE_CANTOPEN && mayBeOpened(file))) return null;
    // This property marks SQLite's error as one of the file system (see `isFileError`).
    throw Object.assign(error as Error, { syscall: 'open' });
  }
}

/**
 * Throws the system's error (`EACCES`) if this account may only read the lock file, but may write to its directory:
 * SQLite then gives the lock to every process of the account. In a read-only directory there is nothing to protect.
 */
function checkExclusive(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch {
    return;
  }
  try {
    accessSync(file, constants.W_OK);
  } catch (error) {
    // Its last holder may have removed it meanwhile.
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}

/**
 * Returns true if a file that SQLite could not open can be opened, or only lacks its directory. Otherwise throws the
 * system's error, which SQLite hides.
 */
function mayBeOpened(file: string): true {
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
  return true;
}

function heldLock(file: string, database: DatabaseSync): HeldLock {
  const release = (): void => void (database.isOpen && database.close());
  const removed = (): boolean => {
    try {
      rmSync(file, { force: true });
      return true;
    } catch {
      return false;
    }
  };
  return {
    release,
    discard() {
      // Removed while the lock is held, because afterwards another process may own the file. Windows cannot remove an
      // open file: it is removed after the release, unless another process has it open by then.
      const gone = removed();
      release();
      if (!gone) removed();
    },
  };
}

const SQLITE_BUSY = 5;
const SQLITE_CANTOPEN = 14;
const POLL_MS = 200;

/**
 * Waits until a lock is acquired. Calls `onWait` after each failed attempt. Creates the lock's directory if it was
 * removed, but not its parents.
 *
 * @throws the reason of `signal` if it aborts; the file system's error if the file or its directory cannot be opened or
 *   created
 */
export async function lock(file: string, clock: Clock, signal: AbortSignal, onWait?: () => void): Promise<HeldLock> {
  for (;;) {
    signal.throwIfAborted();
    const held = tryLock(file);
    if (held) return held;
    onWait?.();
    await clock.sleep(POLL_MS, signal);
    // A process that removes the model also removes the directory of the lock.
    await mkdir(dirname(file)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/**
 * Tells whether a process holds a `flock` on this file, as Python's `filelock`, and thus `huggingface_hub`, does. Linux
 * lists them (proc_locks(5): `<number>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> ...`). Returns false on
 * other systems. At worst, two tools then fetch the same file under different names, and nothing breaks.
 */
export async function isFlocked(file: string): Promise<boolean> {
  const seen = await stat(file).catch(() => null);
  if (seen === null) return false;
  const locks = await readFile('/proc/locks', 'utf8').catch(() => '');
  const place = ` ${deviceNumbers(seen.dev)}:${seen.ino} `;
  return locks.split('\n').some((line) => line.includes(' FLOCK ') && line.includes(place));
}

/** Formats Linux's `dev_t` in hexadecimal as the kernel prints it (makedev(3)). */
function deviceNumbers(device: number): string {
  const bits = BigInt(device);
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n);
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
}

/** Creates an empty lock file if it does not exist. */
export async function touch(file: string): Promise<void> {
  await (await open(file, 'a')).close();
}
