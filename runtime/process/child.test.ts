import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as v from 'valibot';
import { afterAll, expect, it } from 'vitest';
import { Child, childEnvironment } from './child.ts';
import { STARVED_PROGRAM } from './starved-program.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'assay-child-'));
afterAll(() => rmSync(folder, { recursive: true }));

const received = v.object({ works: v.literal(true) });
const flood =
  'process.stdout.write("x".repeat(5000) + "\\n"); process.stderr.write("two\\nlines\\n", () => process.exit(7))';

/** Runs a program until it sends a message or ends. Returns what it sent or the reason, and what was logged. */
async function run(program: string) {
  const file = join(folder, `${program.length}.cjs`);
  writeFileSync(file, program);
  const lines: string[] = [];
  const log = { warn: ({ line }: { line: string }) => void lines.push(line) };
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const child = new Child<{ go: true }, v.InferOutput<typeof received>>(
    {
      entry: pathToFileURL(file),
      received,
      watchMs: 50,
      maxMessageBytes: 2 ** 20,
      output: { log: log as never, name: 'test process' },
    },
    { message: resolve, exit: (reason, silent) => resolve({ reason, silent }) },
  );
  child.limitSilence({ ms: 1_000, failedTo: 'said nothing' });
  child.send({ go: true });
  const result = await promise;
  child.kill('has done its work');
  return { result, lines };
}

const silent = { reason: expect.stringMatching(/^said nothing for \d+ s$/), silent: true };

it.runIf(process.platform === 'linux').each([
  ['answers on a starved machine', STARVED_PROGRAM, { works: true }],
  ['computes without end', 'for (const { ppid } = process; process.ppid === ppid; );', silent],
  ['waits for ever', 'setInterval(() => {}, 1000)', silent],
  ['ends', 'process.exit(3)', { reason: 'ended with code 3', silent: false }],
  ['crashes', 'process.kill(process.pid, "SIGSEGV")', { reason: 'was ended by SIGSEGV', silent: false }],
  [
    'sends what it must not',
    'process.send({ works: 1 })',
    { reason: 'sent a message that is not valid (works: true)', silent: false },
  ],
  [
    'sends too much',
    'process.send({ works: "x".repeat(2 ** 22) }); setInterval(() => {}, 1000)',
    { reason: 'sent a message of more than 1 MB', silent: false },
  ],
  [
    'announces a message that it does not finish',
    // Writes the length of a message, then a part of it, to the channel itself, which takes little at a time.
    `const part = Buffer.alloc(2 ** 16);
    part.writeUInt32BE(1.5e9);
    for (let sent = 0; sent < 2 ** 21; ) try { sent += require("fs").writeSync(3, part); } catch {}
    setInterval(() => {}, 1000)`,
    { reason: 'sent a message of more than 1 MB', silent: false },
  ],
  ['reads a message', 'process.once("message", ({ go }) => process.send({ works: go }))', { works: true }],
])('watches a process that %s', async (_, program, expected) => {
  expect((await run(program)).result).toEqual(expected);
});

/** Writes whole messages to the channel itself, as fast as it takes them. */
const MESSAGES = `const { serialize } = require("v8"), { writeSync } = require("fs");
    const one = serialize({ works: true });
    const length = Buffer.alloc(4);
    length.writeUInt32BE(one.length);
    const many = Buffer.concat(Array(1000).fill([length, one]).flat());
    for (let at = 0; ; ) try { at = (at + writeSync(3, many, at)) % many.length; } catch {}`;

it('ends a process that sends valid messages without end, between which other work has turns', async () => {
  const file = join(folder, 'messages.cjs');
  writeFileSync(file, MESSAGES);
  const turns: number[] = [];
  let messages = 0;
  const { promise, resolve } = Promise.withResolvers<string>();
  new Child(
    { entry: pathToFileURL(file), received, watchMs: 50 },
    {
      message() {
        if (messages++ > 0) return;
        setImmediate(() => {
          turns.push(messages);
          messages = 0;
        });
      },
      exit: resolve,
    },
  );
  expect(await promise).toBe('sent more than 10000 messages a second');
  // As many as one read of the channel has, 64 KiB.
  expect(Math.max(...turns)).toBeLessThan(10_000);
});

it('logs what a process writes, line by line and bounded', async () => {
  const { result, lines } = await run(flood);
  expect(result).toEqual({ reason: 'ended with code 7', silent: false });
  await expect.poll(() => lines.toSorted()).toEqual(['lines', 'two', 'x'.repeat(2_000)]);
});

it('drops the rest of the lines that a process writes without end', async () => {
  const { lines } = await run('process.stdout.write("a\\n".repeat(5000), () => process.exit(7))');
  await expect.poll(() => lines).toContainEqual(expect.stringContaining('the others are dropped'));
  expect(lines.length).toBeLessThan(5_000);
});

it.each([
  ['HF_TOKEN', false],
  ['OPENAI_API_KEY', false],
  ['ASSAY_API_KEY', false],
  ['OTEL_EXPORTER_OTLP_HEADERS', false],
  ['PIP_INDEX_URL', false],
  ['HTTPS_PROXY', false],
  ['DATABASE_URL', false],
  ['GH_PAT', false],
  ['STRIPE_SK', false],
  ['SSH_AUTH_SOCK', false],
  ['NOTIFY_SOCKET', false],
  ['NODE_OPTIONS', false],
  ['CUDA_TOKEN', false],
  ['MY_PATH', false],
  ['PATH', true],
  ['Path', true],
  ['SystemRoot', true],
  ['LC_ALL', true],
  ['NODE_COMPILE_CACHE', true],
  ['LD_LIBRARY_PATH', true],
  ['CUDA_VISIBLE_DEVICES', true],
  ['OMP_NUM_THREADS', true],
])('of the variable %s it passes on: %s', (name, kept) => {
  expect(childEnvironment({ [name]: 'value' })).toEqual(kept ? { [name]: 'value' } : {});
});
