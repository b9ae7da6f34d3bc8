import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { assay, BIN, newFolder } from './assay.ts';

/** Runs the command line with its output where `stdio` says, and returns the exit code and what it wrote to pipes. */
async function ran(args: readonly string[], stdio: ['ignore', number | 'pipe', 'pipe'], closed = false) {
  const env = { PATH: process.env.PATH ?? '', HOME: await newFolder() };
  const child = spawn(process.execPath, [BIN, ...args], { env, stdio });
  if (closed) child.stderr?.destroy();
  const [err, [code]] = await Promise.all([closed || !child.stderr ? '' : text(child.stderr), once(child, 'close')]);
  return { code, err };
}

describe('output that cannot be written', () => {
  it.runIf(existsSync('/dev/full'))('standard output on a full disk is an error with a code of its own', async () => {
    expect(await ran(['models', '--json'], ['ignore', openSync('/dev/full', 'w'), 'pipe'])).toEqual({
      code: 8,
      err: 'assay: The output cannot be written: the disk is full.\n',
    });
  });

  it.each([
    [['status', '--url', 'http://127.0.0.1:1'], 3],
    [['decide'], 2],
  ])('%j keeps its exit code when nobody reads standard error', async (args, code) => {
    expect(await ran(args, ['ignore', 'pipe', 'pipe'], true)).toMatchObject({ code });
  });
});

it.each([[['keys', 'add', 'a']], [['status']], [['ep', 'list']], [['serve', '--no-load']]])(
  '%j refuses an empty --home',
  async (args) => {
    const cwd = await newFolder();
    expect(await assay([...args, '--home', ''], { cwd })).toEqual({
      code: 2,
      out: '',
      err: 'assay: --home must be a folder.\n',
    });
    expect(readdirSync(cwd)).toEqual([]);
  },
);

it.each<[string[], Record<string, string>, string]>([
  [['status', '--url', ''], {}, '"" is not a URL. Use one such as http://127.0.0.1:8080.'],
  [
    ['status'],
    { ASSAY_URL: 'localhost:8080' },
    '"localhost:8080" is not a URL. Use one such as http://127.0.0.1:8080.',
  ],
  [['status'], { PORT: '99999' }, 'PORT is "99999". Set it to a number from 1 to 65535.'],
])('%j with %j says what to set', async (args, env, message) => {
  expect(await assay(args, { env })).toEqual({ code: 2, out: '', err: `assay: ${message}\n` });
});
