import { open, readFile, stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../lib/clock.ts';

/*
 * Locks between processes. Node has no call for file locks, but the SQLite inside it takes them on every system, and the
 * kernel lets go of them when their process dies: after a kill -9 there is nothing stale to recognise or to clean up.
 */

/** A lock that this process holds until it is released or the process ends. */
export interface HeldLock {
  release(): void;
}

/** Takes the lock, or gives null when another process (or another holder in this one) has it. */
export function tryLock(file: string): HeldLock | null {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    // With the journal in memory nothing is written: the file stays empty, and all that is used is its lock.
    database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
    return { release: () => database.isOpen && database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

const SQLITE_BUSY = 5;
const POLL_MS = 200;

/** Waits for the lock. `onWait` is called once for each look at a lock that is still taken. */
export async function lock(file: string, clock: Clock, signal: AbortSignal, onWait?: () => void): Promise<HeldLock> {
  for (;;) {
    signal.throwIfAborted();
    const held = tryLock(file);
    if (held) return held;
    onWait?.();
    await clock.sleep(POLL_MS, signal);
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
