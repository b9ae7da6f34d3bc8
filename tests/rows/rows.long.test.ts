import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Random } from '../../runtime/engine/random.ts';
import { BIN, newFolder } from '../cli/assay.ts';
import { KEY, startServer } from './server.ts';

/*
 * A run over rows whose client and server are killed again and again: the same command, run until it ends by itself,
 * writes what an undisturbed run writes. ROWS and KILLS make the test longer.
 */

const ROWS = Number(process.env.ROWS ?? 200);
const KILLS = Number(process.env.KILLS ?? 4);
const TASKS = JSON.stringify([
  { type: 'decide', name: 'colour', question: 'Which colour?', options: ['red', 'green', 'blue'] },
  { type: 'decide', name: 'urgent', question: 'Is it urgent?', options: ['yes', 'no'] },
]);

function client(url: string, home: string, rows: string, out: string): ChildProcess {
  const args = ['run', TASKS, '--rows', rows, '--out', out, '--state-column', 'text', '--concurrency', '8'];
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: '/nonexistent',
    ASSAY_URL: url,
    ASSAY_HOME: home,
    ASSAY_API_KEY: KEY,
  };
  const child = spawn(process.execPath, [BIN, ...args], { env, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it('writes the same output, however often client and server are killed', { timeout: 3_600_000 }, async () => {
  const home = await newFolder();
  const [rows, calm, wild] = [join(home, 'rows.jsonl'), join(home, 'calm.jsonl'), join(home, 'wild.jsonl')];
  const lines = Array.from({ length: ROWS }, (_, id) => `${JSON.stringify({ id, text: `Mail ${id}` })}\n`);
  lines[7] = '{"id": 7, "text": \n';
  await writeFile(rows, lines.join(''));
  let server = await startServer('0', home);
  const { url } = server;
  await once(client(url, home, rows, calm), 'exit');
  const expected = await readFile(calm, 'utf8');
  expect(expected.trim().split('\n')).toHaveLength(ROWS);
  expect(expected.split('\n')[7]).toContain('malformed_json');

  const random = new Random(Number(process.env.SEED ?? 1));
  const below = (n: number) => Math.floor(random.uniform() * n);
  let running = client(url, home, rows, wild);
  let kills = 0;
  for (; kills < KILLS; kills++) {
    const ended = once(running, 'exit').then(([code]) => code as number | null);
    const ready = server.answers(1 + below((0.8 * ROWS) / KILLS)).then(() => 'ready' as const);
    if ((await Promise.race([ended, ready])) !== 'ready') break;
    if (below(2) === 0) {
      running.kill('SIGKILL');
      await ended;
      running = client(url, home, rows, wild);
    } else {
      server.child.kill('SIGKILL');
      await once(server.child, 'exit');
      server = await startServer(new URL(url).port, home);
    }
  }
  const code = running.exitCode ?? (await once(running, 'exit'))[0];
  expect(kills).toBe(KILLS);
  // Some rows are errors.
  expect(code).toBe(1);
  expect(await readFile(wild, 'utf8')).toBe(expected);
});
