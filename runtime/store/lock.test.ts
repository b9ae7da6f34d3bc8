import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rmdir, stat } from 'node:fs/promises';
import { platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { isFileError } from './disk-error.ts';
import { isFlocked, lock, touch, tryLock } from './lock.ts';

/** True if util-linux's `flock` is installed, which uses the same kind of lock as Python's `filelock`. */
const hasFlock = platform() === 'linux' && spawnSync('flock', ['--version']).status === 0;

const lockFile = async (): Promise<string> => join(await mkdtemp(join(tmpdir(), 'assay-lock-')), 'assay.lock');

/** Starts a process that holds the lock until it is killed. */
async function otherProcess(file: string): Promise<{ kill(): Promise<void> }> {
  const script = `import { tryLock } from ${JSON.stringify(new URL('./lock.ts', import.meta.url).href)};
    globalThis.held = tryLock(${JSON.stringify(file)}); console.log(globalThis.held ? 'held' : 'busy'); setInterval(() => {}, 1e6);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  expect(String(line).trim()).toBe('held');
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/**
 * Starts a process that acquires and discards the lock many times. Resolves to its exit code: 1 if two processes ever
 * held the lock at the same time.
 */
async function discardAgainAndAgain(file: string): Promise<number> {
  const script = `import { lock } from ${JSON.stringify(new URL('./lock.ts', import.meta.url).href)};
    import { mkdirSync, rmdirSync } from 'node:fs';
    import { dirname } from 'node:path';
    const file = ${JSON.stringify(file)};
    const clock = { sleep: () => new Promise(setImmediate) };
    try { mkdirSync(dirname(file)); } catch {}
    for (let i = 0; i < 300; i += 1) {
      const held = await lock(file, clock, AbortSignal.timeout(60_000));
      mkdirSync(dirname(file) + '.held'); // throws if another holder has it
      await new Promise(setImmediate);
      rmdirSync(dirname(file) + '.held');
      held.discard();
      try { rmdirSync(dirname(file)); } catch {}
      await new Promise(setImmediate);
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [code] = await once(child, 'exit');
  return code;
}

describe('a lock', () => {
  it('has one holder, also in one process, and can be taken again after release', async () => {
    const file = await lockFile();
    const first = tryLock(file);
    expect(first).not.toBeNull();
    expect(tryLock(file)).toBeNull();
    first?.release();
    first?.release();
    const second = tryLock(file);
    expect(second).not.toBeNull();
    second?.release();
    expect((await stat(file)).size).toBe(0);
  });

  it('of another process is free as soon as that process is killed', async () => {
    const file = await lockFile();
    const other = await otherProcess(file);
    expect(tryLock(file)).toBeNull();
    let waits = 0;
    const waiting = lock(file, systemClock, AbortSignal.timeout(60_000), () => {
      waits += 1;
    });
    await other.kill();
    (await waiting).release();
    expect(waits).toBeGreaterThan(0);
  });

  it('whose file and directory are removed is created again by the process that waits', async () => {
    const file = await lockFile();
    const held = tryLock(file);
    let waits = 0;
    const waiting = lock(file, systemClock, AbortSignal.timeout(60_000), () => {
      waits += 1;
    });
    await expect.poll(() => waits).toBeGreaterThan(0);
    held?.discard();
    await rmdir(dirname(file));
    expect(tryLock(file)).toBeNull();
    const next = await waiting;
    expect(tryLock(file)).toBeNull();
    next.release();
    tryLock(file)?.release();
  });

  it('has one holder also where every holder removes its file and directory', async () => {
    const file = join(dirname(await lockFile()), 'locks', 'assay.lock');
    const codes = await Promise.all([1, 2, 3].map(() => discardAgainAndAgain(file)));
    expect(codes).toEqual([0, 0, 0]);
  });

  it('of a file that cannot be used is an error of the file system', async () => {
    const error = await lock(
      await mkdtemp(join(tmpdir(), 'assay-lock-')),
      systemClock,
      AbortSignal.timeout(1000),
    ).catch((thrown: unknown) => thrown);
    expect(isFileError(error)).toBe(true);
  });

  // Root may write to every file.
  it.skipIf(process.getuid?.() === 0)('of a file that may only be read has no holder', async () => {
    const file = await lockFile();
    await touch(file);
    await chmod(file, 0o444);
    expect(() => tryLock(file)).toThrow('EACCES');
    await chmod(dirname(file), 0o555);
    tryLock(file)!.release();
    await chmod(dirname(file), 0o755);
  });

  it('is given up when the caller aborts', async () => {
    const file = await lockFile();
    const held = tryLock(file);
    await expect(lock(file, systemClock, AbortSignal.timeout(50))).rejects.toThrow(/timeout/i);
    held?.release();
  });
});

describe.runIf(hasFlock)('a flock of another tool', () => {
  it('is seen while it is held', async () => {
    const file = await lockFile();
    await touch(file);
    expect(await isFlocked(file)).toBe(false);
    const child = spawn('flock', [file, 'cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.write('held\n');
    await once(child.stdout, 'data');
    expect(await isFlocked(file)).toBe(true);
    child.stdin.end();
    await once(child, 'exit');
    expect(await isFlocked(file)).toBe(false);
  });
});
