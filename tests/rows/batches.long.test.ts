import { once } from 'node:events';
import OpenAI, { toFile } from 'openai';
import { expect, it } from 'vitest';
import { Random } from '../../runtime/engine/random.ts';
import { newFolder } from '../cli/assay.ts';
import { KEY, startServer } from './server.ts';

/*
 * Batches of a server that is killed again and again, through OpenAI's own client: no line is lost or doubled. RUNS,
 * LINES and SEED make the test longer.
 */

const RUNS = Number(process.env.RUNS ?? 2);
const LINES = Number(process.env.LINES ?? 120);

const clientOf = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });

const request = (i: number) => ({
  custom_id: `row ${i} é`,
  method: 'POST',
  url: '/v1/tasks',
  body: {
    model: 'assay/starter',
    context: `Mail ${i}`,
    tasks: i % 40 === 7 ? [] : [{ type: 'decide', name: 'a', question: 'Which?', options: ['x', 'y', 'z'] }],
  },
});

it('answers every line once, however often the server is killed', { timeout: 3_600_000 }, async () => {
  const random = new Random(Number(process.env.SEED ?? 1));
  const below = (n: number) => Math.floor(random.uniform() * n);
  const home = await newFolder();
  let server = await startServer('0', home);
  const { url } = server;
  const client = clientOf(url);
  const restart = async () => {
    server.child.kill('SIGKILL');
    await once(server.child, 'exit');
    server = await startServer(new URL(url).port, home);
  };
  /** Repeats a call until a server answers it. */
  async function insisting<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof OpenAI.APIConnectionError)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
  const content = Array.from({ length: LINES }, (_, i) => JSON.stringify(request(i))).join('\n');
  let expected: string | undefined;
  for (let run = 0; run <= RUNS; run++) {
    const file = await insisting(async () =>
      client.files.create({ file: await toFile(Buffer.from(content), 'in.jsonl'), purpose: 'batch' }),
    );
    const create = () =>
      client.batches.create(
        {
          input_file_id: file.id,
          endpoint: '/v1/tasks' as never,
          completion_window: '24h',
          metadata: { run: String(run) },
        },
        { headers: { 'idempotency-key': `run-${run}` } },
      );
    const created = await insisting(create);
    // The first run is undisturbed. The others are killed while they are answered, or as soon as they are accepted.
    for (let kill = run === 0 ? 0 : 1 + below(3); kill > 0; kill--) {
      const ended = (async () => {
        for (;;) {
          const { status } = await insisting(() => client.batches.retrieve(created.id));
          if (status === 'completed') return;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      })();
      if (below(4) > 0) await Promise.race([server.answers(1 + below(LINES / 3)), ended]);
      await restart();
    }
    expect((await insisting(create)).id).toBe(created.id);
    let batch = created;
    while (batch.status !== 'completed') {
      await new Promise((resolve) => setTimeout(resolve, 30));
      batch = await insisting(() => client.batches.retrieve(created.id));
      expect(['validating', 'in_progress', 'finalizing', 'completed']).toContain(batch.status);
    }
    const output = await (await client.files.content(batch.output_file_id!)).text();
    const errors = await (await client.files.content(batch.error_file_id!)).text();
    const ids = (text: string) =>
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).custom_id);
    expect([...ids(output), ...ids(errors)].sort()).toEqual(
      Array.from({ length: LINES }, (_, i) => `row ${i} é`).sort(),
    );
    expect(batch.request_counts).toEqual({ total: LINES, completed: ids(output).length, failed: ids(errors).length });
    // Ids differ from batch to batch, and nothing else.
    const plain = `${output}${errors}`.replaceAll(created.id, 'batch').replaceAll(/"id":"batch-\d+",/g, '');
    expected ??= plain;
    expect(plain).toBe(expected);
  }
});
