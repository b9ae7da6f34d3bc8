import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BIN, newFolder } from './assay.ts';

/** Starts `assay serve` without a model; returns its process id and address. */
async function serve(...flags: string[]): Promise<{ pid: number; url: string }> {
  const args = [BIN, 'serve', '--no-load', '--port', '0', '--home', await newFolder(), ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(async () => {
    child.kill();
    await once(child, 'exit');
  });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    said += text;
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
    if (url) return { pid: child.pid!, url };
  }
  throw new Error(`the server ended: ${said}`);
}

const statusWith = async (url: string, key: string) =>
  (await fetch(`${url}/v1/tasks`, { method: 'POST', body: '{}', headers: { authorization: `Bearer ${key}` } })).status;

test('the server accepts the key of --api-key-file', async () => {
  const file = join(await newFolder(), 'key');
  await writeFile(file, 'secret-of-a-file\n');
  const { url } = await serve('--api-key-file', file);
  expect(await statusWith(url, 'secret-of-a-file')).toBe(400);
  expect(await statusWith(url, 'another')).toBe(401);
});

test.runIf(process.platform === 'linux')('--api-key leaves the process list', async () => {
  const { pid, url } = await serve('--api-key', 'secret-of-a-flag');
  expect(await statusWith(url, 'secret-of-a-flag')).toBe(400);
  expect(await readFile(`/proc/${pid}/cmdline`, 'utf8')).toMatch(/^assay serve\0*$/);
});
