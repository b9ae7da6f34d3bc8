import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { bundleTiny, hostOver, ScriptedEngine } from './machine.ts';

const TINY = parseModelId('assay/tiny');
const SCRIPT = fileURLToPath(new URL('./compile-process.ts', import.meta.url));

async function newBase(parent = tmpdir()): Promise<string> {
  const base = await fs.mkdtemp(join(parent, 'assay-compile-'));
  await bundleTiny(base);
  return base;
}

/**
 * Starts another process that compiles; reports its lines as they arrive. It stops itself at the line that begins with
 * `stopAt`.
 */
function compileElsewhere(base: string, stopAt?: string) {
  const args = [SCRIPT, base, ...(stopAt === undefined ? [] : [stopAt])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, lines: createInterface({ input: child.stdout }) };
}

const here = (base: string) => hostOver(base, new ScriptedEngine());
const forms = async (base: string) =>
  (await fs.readdir(join(base, 'assay/compiled/models--assay--tiny')).catch(() => [])).filter(
    (name) => name !== '.lock',
  );

describe('kill -9', () => {
  it.each([
    'verifying',
    'compiling starting',
    'compiling reading',
    'compiling weights',
    'compiling graph',
    'compiling saving',
  ])('at "%s" leaves nothing that can be found, and the next compile is clean', async (step) => {
    const base = await newBase();
    const { child, lines } = compileElsewhere(base, step);
    const exited = once(child, 'exit');
    for await (const line of lines) {
      if (!line.startsWith(step)) continue;
      child.kill('SIGKILL');
      break;
    }
    await exited;
    expect((await forms(base)).filter((name) => !name.startsWith('.'))).toEqual([]);
    expect((await here(base).host.listModels())[0]?.status).toBe('available');
    expect(await here(base).download(TINY, { allowDownload: false })).toMatchObject({ compiled: true });
    expect(await forms(base)).toHaveLength(1);
    expect(await here(base).host.load(TINY, {})).toMatchObject({ compiled: false });
  });
});

describe('two processes', () => {
  it('that compile at once do it once', async () => {
    const base = await newBase();
    const first = compileElsewhere(base, 'compiling starting');
    let last = '';
    for await (const line of first.lines) {
      last = line;
      if (line !== 'compiling starting') continue;
      const second: string[] = [];
      for await (const other of compileElsewhere(base).lines) {
        second.push(other);
        if (other === 'compiling another process is compiling it') first.child.kill('SIGCONT');
      }
      expect(second.at(-1)).toBe('done false');
    }
    expect(last).toBe('done true');
  });

  it('of which one compiles: the other deletes none of its files', async () => {
    const base = await newBase();
    const { child, lines } = compileElsewhere(base, 'compiling starting');
    for await (const line of lines) if (line === 'compiling starting') break;
    await expect(here(base).host.remove(TINY, { compiledOnly: true })).rejects.toMatchObject({
      code: 'operation_in_progress',
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await here(base).host.remove(TINY, { compiledOnly: true });
    expect(await forms(base)).toEqual([]);
  });
});

it('a full disk leaves no partial files, and the compile works once there is space', async (context) => {
  const disk = await fs.mkdtemp(join(tmpdir(), 'assay-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=200k', 'tmpfs', disk], { stdio: 'ignore' });
  } catch {
    return context.skip('mounting a tmpfs is not allowed here; model-host.test.ts injects the same fault');
  }
  onTestFinished(() => void execFileSync('umount', ['-l', disk]));
  const base = await newBase();
  await fs.symlink(disk, join(base, 'assay'));
  const freeBytes = async (directory: string): Promise<number> => {
    const { bavail, bsize } = await fs.statfs(directory);
    return bavail * bsize;
  };
  const refused = hostOver(base, new ScriptedEngine(), { changes: { freeBytes } });
  await expect(refused.download(TINY, { allowDownload: false })).rejects.toMatchObject({ code: 'disk_full' });
  // The check before refuses; here the disk fills up meanwhile.
  let asked = 0;
  const late = hostOver(base, new ScriptedEngine(), {
    changes: { freeBytes: async (directory) => (asked++ === 0 ? 1e12 : freeBytes(directory)) },
  });
  await expect(late.download(TINY, { allowDownload: false })).rejects.toMatchObject({ code: 'disk_full' });
  expect(await forms(base)).toEqual([]);
  execFileSync('mount', ['-o', 'remount,size=128m', disk]);
  expect(await late.download(TINY, { allowDownload: false })).toMatchObject({ compiled: true });
});
