import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../lib/clock.ts';
import { dirname } from './paths.ts';

/*
 * Locks between processes. Node has no call for file locks, but the SQLite inside it takes them on every system, and the
 * kernel lets go of them when their process dies: after a kill -9 there is nothing stale to recognise or to clean up.
 */

/** A lock that this process holds until it is released or the process ends. */
export interface HeldLock {
  release(): void;
  /** Releases it and removes its file; whoever waits for it makes the file anew. */
  discard(): void;
}

/**
 * Takes the lock, or gives null when another process (or another holder in this one) has it, or has just removed its directory.
 *
 * @throws Error of the file system for a file that cannot be used
 */
export function tryLock(file: string): HeldLock | null {
  for (;;) {
    const before = inodeOf(file);
    const database = openExclusively(file);
    if (!database) return null;
    // The last holder may have discarded it after this one had opened it: then others would lock another file of this name.
    // The inode of a new file is not known before it is opened, so that one is taken twice.
    if (before !== undefined && inodeOf(file) === before) return heldLock(file, database);
    database.close();
  }
}

const inodeOf = (file: string): bigint | undefined => statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;

function openExclusively(file: string): DatabaseSync | null {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    // With the journal in memory nothing is written: the file stays empty, and all that is used is its lock.
    database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    const { errcode } = error as { errcode?: number };
    if (errcode === SQLITE_BUSY || (errcode === SQLITE_CANTOPEN && mayBeOpened(file))) return null;
    // What SQLite says of a file is to be told as an error of the file system, not of a network.
    throw Object.assign(error as Error, { syscall: 'open' });
  }
}

/** Whether a file that could not be opened can be, once its directory is there. Throws the system's error, which SQLite does not tell. */
function mayBeOpened(file: string): true {
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
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
      // While it is held: afterwards the file may be somebody else's. Windows removes none that is open, so not theirs either.
      const gone = removed();
      release();
      if (!gone) removed();
    },
  };
}

const SQLITE_BUSY = 5;
const SQLITE_CANTOPEN = 14;
const POLL_MS = 200;

/** Waits for the lock. `onWait` is called once for each look at a lock that is still taken. */
export async function lock(file: string, clock: Clock, signal: AbortSignal, onWait?: () => void): Promise<HeldLock> {
  for (;;) {
    signal.throwIfAborted();
    const held = tryLock(file);
    if (held) return held;
    onWait?.();
    await clock.sleep(POLL_MS, signal);
    // A holder that removes the model removes the lock's directory, too.
    await mkdir(dirname(file)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/**
 * Whether some process holds a `flock` on this file, as Python's `filelock` (and so `huggingface_hub`) does. Linux lists
 * them (proc_locks(5): `<number>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> ...`); elsewhere the answer is false, and
 * the worst case is that two tools fetch the same file: each writes under its own name, so nothing breaks.
 */
export async function isFlocked(file: string): Promise<boolean> {
  const seen = await stat(file).catch(() => null);
  if (seen === null) return false;
  const locks = await readFile('/proc/locks', 'utf8').catch(() => '');
  const place = ` ${deviceNumbers(seen.dev)}:${seen.ino} `;
  return locks.split('\n').some((line) => line.includes(' FLOCK ') && line.includes(place));
}

/** Linux's `dev_t` as the kernel prints it, in hexadecimal (makedev(3)). */
function deviceNumbers(device: number): string {
  const bits = BigInt(device);
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n);
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
}

/** Makes an empty lock file where there is none. */
export async function touch(file: string): Promise<void> {
  await (await open(file, 'a')).close();
}
