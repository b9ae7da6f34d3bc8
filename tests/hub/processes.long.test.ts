import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { findLocalModel } from '../../runtime/store/hub-cache.ts';
import { touch } from '../../runtime/store/lock.ts';
import type { Fault } from './faults.ts';
import { HubServer } from './hub-server.ts';
import { expectWhole, MODEL, machine, neededFiles, RANGE_BYTES, randomModel } from './pull.ts';

const model = randomModel({ dataBytes: 24 * RANGE_BYTES + 77 });
const needed = neededFiles(model);
const neededBytes = needed.reduce((sum, file) => sum + file.content.length, 0);
/** util-linux's `flock` takes the same lock as Python. */
const hasFlock = process.platform === 'linux' && spawnSync('flock', ['--version']).status === 0;
let hub: HubServer;

beforeEach(async () => {
  hub = await HubServer.start(model);
});
afterEach(() => hub.stop());

interface Line {
  stage?: string;
  bytes?: number;
  step?: string;
  done?: number;
}

/** Starts a process that pulls into `hubCache`. */
function startPull(hubCache: string): { child: ChildProcess; lines: AsyncIterable<Line> } {
  const script = fileURLToPath(new URL('./pull-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, hub.endpoint, hubCache], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout! });
  return {
    child,
    lines: (async function* () {
      for await (const line of lines) yield JSON.parse(line) as Line;
    })(),
  };
}

const newCache = async (): Promise<string> => join(await fs.mkdtemp(join(tmpdir(), 'assay-cache-')), 'hub');

async function killWhen(hubCache: string, when: (line: Line) => boolean): Promise<void> {
  const { child, lines } = startPull(hubCache);
  const exited = once(child, 'exit');
  for await (const line of lines) {
    if (!when(line)) continue;
    child.kill('SIGKILL');
    break;
  }
  await exited;
}

describe('kill -9', () => {
  it('at points all through a pull leaves nothing half visible, and the next pull ends it with little fetched twice', async () => {
    hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond: 4_000_000 } });
    for (let i = 0; i < 6; i += 1) {
      const hubCache = await newCache();
      const at = randomInt(neededBytes);
      await killWhen(hubCache, (line) => (line.bytes ?? 0) >= at || line.done !== undefined);
      const box = await machine(hub, { hubCache });
      // Everything visible is complete: a late signal finds the pull at its end.
      if (await findLocalModel(box.paths, MODEL, { device: 'CPU' })) await expectWhole(box, model);
      await box.pull();
      await expectWhole(box, model);
      expect((await box.tree()).filter((name) => /assay-(partial|journal)/.test(name))).toEqual([]);
    }
  });

  it('costs less than one range', async () => {
    hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond: 2_000_000 } });
    const hubCache = await newCache();
    let there = 0;
    await killWhen(hubCache, ({ bytes = 0 }) => {
      there = bytes;
      return bytes >= neededBytes / 2;
    });
    const { bytes } = await (await machine(hub, { hubCache })).pull();
    expect(bytes).toBeLessThanOrEqual(neededBytes - there + RANGE_BYTES);
  });
});

describe('two processes', () => {
  /** Slow enough that the second process begins to wait long before the first ends, also on a busy machine. */
  const slow: Fault = { kind: 'throttle', bytesPerSecond: 30_000 };

  it('that pull at once share one transfer', async () => {
    const restore = hub.fail({ on: 'content', fault: slow });
    const hubCache = await newCache();
    const run = async (): Promise<{ done: number; waited: boolean }> => {
      let [done, waited] = [-1, false];
      for await (const line of startPull(hubCache).lines) {
        if (line.step) restore();
        waited ||= line.step !== undefined;
        if (line.done !== undefined) done = line.done;
      }
      return { done, waited };
    };
    const results = await Promise.all([run(), run()]);
    expect(results.map((r) => r.done).sort((a, b) => a - b)).toEqual([0, neededBytes]);
    expect(results.find((r) => r.done === 0)?.waited).toBe(true);
    expect(hub.bytesSent()).toBe(neededBytes);
  });

  it('of which the first is killed: the second goes on', async () => {
    const restore = hub.fail({ on: 'content', fault: slow });
    const hubCache = await newCache();
    const first = startPull(hubCache);
    for await (const line of first.lines) if ((line.bytes ?? 0) > 3 * RANGE_BYTES) break;
    const second = startPull(hubCache);
    let done = -1;
    for await (const line of second.lines) {
      if (line.step && first.child.kill('SIGKILL')) restore();
      if (line.done !== undefined) done = line.done;
    }
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(neededBytes);
  });

  it.runIf(hasFlock)('waits for the lock that a Python tool holds on a file, and takes what it brought', async () => {
    const box = await machine(hub);
    const file = needed.find((f) => f.sha256)!;
    await box.paths.makeDirectory(box.paths.locks(MODEL));
    await box.paths.makeDirectory(box.paths.blobs(MODEL));
    const lockFile = box.paths.blobLock(MODEL, file.sha256!);
    await touch(lockFile);
    const holder = spawn('flock', [lockFile, 'cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
    holder.stdin.write('held\n');
    await once(holder.stdout, 'data');
    const steps = new Set<string>();
    const pulling = box.pull({
      onProgress: ({ step }) => {
        if (!step || steps.has(step)) return;
        steps.add(step);
        void fs.writeFile(box.paths.blob(MODEL, file.sha256!), file.content).then(() => holder.stdin.end());
      },
    });
    expect((await pulling).bytes).toBe(neededBytes - file.content.length);
    expect([...steps]).toEqual(['another tool is fetching it']);
    expect(hub.bytesSent(file.path)).toBe(0);
  });
});

describe('a full disk', () => {
  /** Mounts a file system of 1 MiB; null if mounting is not allowed. */
  async function smallDisk(): Promise<string | null> {
    const directory = await fs.mkdtemp(join(tmpdir(), 'assay-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory], { stdio: 'ignore' });
    } catch {
      return null;
    }
    onTestFinished(() => void execFileSync('umount', ['-l', directory]));
    return directory;
  }
  const noStatfs = { statfs: (async () => ({ bavail: 1e9, bsize: 4096 })) as unknown as typeof fs.statfs };

  it('is told before anything is fetched', async () => {
    const statfs = (async () => ({ bavail: 10, bsize: 4096 })) as unknown as typeof fs.statfs;
    const box = await machine(hub, { fs: { statfs } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'disk_full',
      message: expect.stringMatching(/needs 1\.6 MB more, .* has 41\.0 kB free.*HF_HUB_CACHE/),
    });
    expect(hub.bytesSent()).toBe(0);
  });

  it('on a real small disk, that others fill meanwhile: no half is visible, and it goes on after space returns', async (context) => {
    const disk = await smallDisk();
    if (disk === null)
      return context.skip('mounting a tmpfs is not allowed here; the next test injects the same fault');
    const box = await machine(hub, { hubCache: join(disk, 'hub'), fs: noStatfs });
    await expect(box.pull()).rejects.toMatchObject({ code: 'disk_full' });
    expect((await box.tree()).filter((name) => /snapshots|refs/.test(name))).toEqual([]);
    execFileSync('mount', ['-o', 'remount,size=8m', disk]);
    const report = await box.pull();
    expect(report.bytes).toBeGreaterThan(0);
    expect(report.bytes).toBeLessThan(neededBytes);
    expect(await findLocalModel(box.paths, MODEL, { device: 'CPU' })).not.toBeNull();
  });

  it('is not taken for the network, and neither is any other fault of a file', async () => {
    const open = async () => {
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO', syscall: 'open' });
    };
    const box = await machine(hub, { fs: { open } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'internal_error',
      message: expect.stringContaining('HF_HUB_CACHE could not be used (EIO)'),
    });
  });

  it('by an injected ENOSPC: the same', async () => {
    let room = 900_000;
    const open: typeof fs.open = async (...args) => {
      const handle = await fs.open(...args);
      const write = handle.write.bind(handle) as (...a: unknown[]) => Promise<unknown>;
      (handle as { write: unknown }).write = async (buffer: Uint8Array, ...rest: unknown[]) => {
        room -= buffer.length;
        if (room < 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' });
        return write(buffer, ...rest);
      };
      return handle;
    };
    const box = await machine(hub, { fs: { open } });
    await expect(box.pull()).rejects.toMatchObject({ code: 'disk_full' });
    expect((await box.tree()).filter((name) => /snapshots|refs/.test(name))).toEqual([]);
    room = 1e9;
    expect((await box.pull()).bytes).toBeLessThan(neededBytes - 500_000);
  });
});
