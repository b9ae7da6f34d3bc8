import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openNotify } from './notify.ts';

/** Puts a program in the place of systemd-notify, which notes what it is told. */
async function recorder(): Promise<{ env: Record<string, string>; said(): Promise<string[]> }> {
  const folder = await mkdtemp(join(tmpdir(), 'assay-notify-'));
  await writeFile(join(folder, 'systemd-notify'), '#!/bin/sh\necho "$1" >> "$NOTIFY_SOCKET"\n', { mode: 0o755 });
  const log = join(folder, 'said');
  const said = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  return { env: { PATH: `${folder}:${process.env.PATH}`, NOTIFY_SOCKET: log }, said };
}

test('says that the server is ready, then that it lives, and that it stops', async () => {
  const { env, said } = await recorder();
  const notify = openNotify({ ...env, WATCHDOG_USEC: '30000', WATCHDOG_PID: String(process.pid) }, process.pid);
  notify.ready();
  await expect.poll(said).toEqual(expect.arrayContaining(['READY=1', 'WATCHDOG=1']));
  notify.stopping();
  await expect.poll(said).toContain('STOPPING=1');
});

test('feeds no watchdog of another process, and says nothing without systemd', async () => {
  const { env, said } = await recorder();
  openNotify({ ...env, WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' }, process.pid).ready();
  await expect.poll(said).toEqual(['READY=1']);
  const { NOTIFY_SOCKET: _, ...without } = env;
  openNotify(without, process.pid).ready();
  expect(await said()).toEqual(['READY=1']);
});
