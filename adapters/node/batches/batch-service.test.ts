import { mkdtemp, readdir, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../../lib/clock.ts';
import type { CreateBatchRequest } from '../../../lib/schema/batches.ts';
import { type AnswerLine, BATCH_LIMITS, type BatchLimits, openBatches } from './batch-service.ts';

/** Opens batches in a new folder, at a time that the test moves. */
async function open(limits: Partial<BatchLimits> = {}, folder?: string) {
  const home = folder ?? (await mkdtemp(join(tmpdir(), 'assay-batches-')));
  const clock: Clock & { ms: number } = {
    ms: 1_800_000_000_000,
    now: () => clock.ms,
    async sleep(ms) {
      clock.ms += ms;
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
  const stuck: { batch: string; waitedMs: number }[] = [];
  const failed = (batch: string) => stuck.push({ batch, waitedMs: clock.ms - 1_800_000_000_000 });
  const service = openBatches(home, clock, failed, { ...BATCH_LIMITS, ...limits });
  let closed = false;
  const close = async () => {
    if (!closed) await service.close();
    closed = true;
  };
  onTestFinished(close);
  return { service, clock, home, close, stuck };
}
type Service = Awaited<ReturnType<typeof open>>['service'];

/** Options of a request whose body is a stream, which the types of `fetch` lack. */
const sending = (body: unknown) => ({ method: 'POST', body, duplex: 'half' }) as RequestInit;

function form(parts: Record<string, string>, file: string | null, name = 'in.jsonl'): Request {
  const body = new FormData();
  for (const [name, value] of Object.entries(parts)) body.set(name, value);
  if (file !== null) body.set('file', new File([file], name));
  return new Request('http://x/v1/files', { method: 'POST', body });
}

const upload = (service: Service, text: string, owner = 'ann') =>
  service.upload(owner, form({ purpose: 'batch' }, text));
const line = (id: string, body: object = { n: id }, more: object = {}) =>
  JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/tasks', body, ...more });
const asking = (input_file_id: string): CreateBatchRequest => ({
  input_file_id,
  endpoint: '/v1/tasks',
  completion_window: '24h',
});
const echo: AnswerLine = async (_, __, body) =>
  Response.json({ model: 'acme/one', echo: JSON.parse(body).n, usage: { prompt_tokens: 3, completion_tokens: 1 } });

async function ended(service: Service, id: string, owner = 'ann') {
  await expect.poll(() => service.batch(owner, id).status).toMatch(/completed|failed|expired|cancelled/);
  return service.batch(owner, id);
}
async function linesOf(service: Service, id: string | undefined, owner = 'ann') {
  const text = await new Response(service.content(owner, id ?? '')).text();
  return text
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one));
}

test('answers the lines of a file, and writes answers and errors apart, in order', async () => {
  const { service } = await open();
  service.start(async (owner, endpoint, body, ...rest) => {
    expect([owner, endpoint]).toEqual(['ann', '/v1/tasks']);
    if (body.includes('"b"')) return Response.json({ error: { code: 'invalid_value' } }, { status: 422 });
    return echo(owner, endpoint, body, ...rest);
  });
  const file = await upload(service, `${line('a')}\r\n${line('b')}\n\n${line('c', { n: 1.5 })}`);
  expect(file).toMatchObject({ object: 'file', purpose: 'batch', filename: 'in.jsonl', created_at: 1_800_000_000 });
  const batch = await ended(service, service.create('ann', { ...asking(file.id), metadata: { k: 'v' } }).id);
  expect(batch).toMatchObject({
    status: 'completed',
    model: 'acme/one',
    request_counts: { total: 3, completed: 2, failed: 1 },
    usage: { input_tokens: 6, output_tokens: 2, total_tokens: 8 },
    metadata: { k: 'v' },
  });
  const output = await linesOf(service, batch.output_file_id);
  expect(
    output.map(({ custom_id, response, error }) => [custom_id, response.status_code, response.body.echo, error]),
  ).toEqual([
    ['a', 200, 'a', null],
    ['c', 200, 1.5, null],
  ]);
  expect(await linesOf(service, batch.error_file_id)).toMatchObject([
    { custom_id: 'b', response: { status_code: 422, body: { error: { code: 'invalid_value' } } }, error: null },
  ]);
});

test.each([
  ['{"custom_id":', 'invalid_json_line', 1],
  [line(''), 'missing_required_parameter', 1],
  [line('x'.repeat(257)), 'missing_required_parameter', 1],
  [`${line('a')}\n${line('a')}`, 'duplicate_custom_id', 2],
  [line('a', {}, { method: 'GET' }), 'invalid_method', 1],
  [line('a', {}, { url: '/v1/embeddings' }), 'mismatched_endpoint', 1],
  [line('a', [] as never), 'missing_required_parameter', 1],
  [line('a', { stream: true }), 'invalid_request', 1],
  [`{"body":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'invalid_json_line', 1],
  [`{"body":[${'[],'.repeat(250_000)}[]]}`, 'invalid_json_line', 1],
  [`${line('a')}${'\n'.repeat(100_002)}`, 'too_many_tasks', 100_001],
  ['\n\n', 'empty_file', null],
])('refuses a file with the number of the line that is wrong (%#)', async (text, code, number) => {
  const { service } = await open();
  service.start(echo);
  const batch = await ended(service, service.create('ann', asking((await upload(service, text)).id)).id);
  expect(batch).toMatchObject({ status: 'failed', errors: { object: 'list', data: [{ code, line: number }] } });
});

test('gives other work turns between lines that are refused at once', async () => {
  const { service } = await open();
  let [since, most, over] = [0, 0, false];
  const turn = () => {
    since = 0;
    if (!over) setImmediate(turn);
  };
  turn();
  service.start(async () => {
    most = Math.max(most, ++since);
    return new Response('{"error":{"code":"invalid_value"}}', { status: 422 });
  });
  const file = await upload(service, Array.from({ length: 500 }, (_, i) => line(`${i}`)).join('\n'));
  const batch = await ended(service, service.create('ann', asking(file.id)).id);
  over = true;
  expect(batch.request_counts).toEqual({ total: 500, completed: 0, failed: 500 });
  expect(most).toBeLessThan(5);
});

test('answers large lines one after the other, and small ones side by side', async () => {
  const { service } = await open({ inflight: 4, inflightCharacters: 1000 });
  let [running, most] = [0, 0];
  const large: number[] = [];
  service.start(async (owner, endpoint, body, ...rest) => {
    most = Math.max(most, ++running);
    if (body.length > 900) large.push(running);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    running--;
    return echo(owner, endpoint, body, ...rest);
  });
  const ids = ['a', 'b', 'x'.repeat(200), 'c', 'd', 'y'.repeat(201), 'z'.repeat(202), 'e'];
  const lines = ids.map((id) => line(id, { n: id, pad: id.length > 1 ? 'p'.repeat(1000) : '' }));
  const file = await upload(service, lines.join('\n'));
  const batch = await ended(service, service.create('ann', asking(file.id)).id);
  expect(batch.request_counts).toMatchObject({ total: 8, completed: 8 });
  expect((await linesOf(service, batch.output_file_id)).map(({ custom_id }) => custom_id)).toEqual(ids);
  expect(large).toEqual([1, 1, 1]);
  expect(most).toBeGreaterThan(1);
});

test('keeps what was answered when a batch is cancelled or expires', async () => {
  const { service, clock } = await open({ inflight: 1 });
  const holding = Promise.withResolvers<Response>();
  const asked: string[] = [];
  service.start(async (owner, endpoint, body, id, signal) => {
    asked.push(JSON.parse(body).n);
    if (!body.includes('"slow"')) return echo(owner, endpoint, body, id, signal);
    signal.addEventListener('abort', () => holding.reject(signal.reason));
    return holding.promise;
  });
  const file = await upload(service, [line('a'), line('slow'), line('c')].join('\n'));
  const one = service.create('ann', asking(file.id));
  await expect.poll(() => asked).toEqual(['a', 'slow']);
  await expect(service.deleteFile('ann', file.id)).rejects.toMatchObject({ code: 'operation_in_progress' });
  expect(service.cancel('ann', one.id).status).toBe('cancelling');
  const cancelled = await ended(service, one.id);
  expect(cancelled).toMatchObject({ status: 'cancelled', request_counts: { total: 3, completed: 1, failed: 0 } });
  expect(await linesOf(service, cancelled.output_file_id)).toMatchObject([{ custom_id: 'a' }]);
  expect(() => service.cancel('ann', cancelled.id)).not.toThrow();

  const lone = await upload(service, [line('a'), line('b')].join('\n'));
  clock.ms += 1000;
  const late = openLate();
  async function openLate() {
    const batch = service.create('ann', asking(lone.id));
    clock.ms += 24 * 3600 * 1000;
    return ended(service, batch.id);
  }
  const expired = await late;
  expect(expired.status).toBe('expired');
  const errors = await linesOf(service, expired.error_file_id);
  expect(errors.at(-1)).toMatchObject({ response: null, error: { code: 'batch_expired' } });
  expect(expired.request_counts.completed + expired.request_counts.failed).toBe(2);
});

test('continues after a stop where it was, and removes contents without a file', async () => {
  const first = await open({ inflight: 1 });
  const asked: string[] = [];
  const never: AnswerLine = (owner, endpoint, body, id, signal) => {
    asked.push(JSON.parse(body).n);
    if (asked.length <= 2) return echo(owner, endpoint, body, id, signal);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  first.service.start(never);
  const file = await upload(first.service, ['a', 'b', 'c', 'd'].map((id) => line(id)).join('\n'));
  const { id } = first.service.create('ann', asking(file.id), 'once');
  await expect.poll(() => asked.length).toBe(3);
  await first.close();
  const second = await open({}, first.home);
  expect(await readdir(join(first.home, 'files'))).toEqual([file.id]);
  const again: string[] = [];
  second.service.start((owner, endpoint, body, ...rest) => {
    again.push(JSON.parse(body).n);
    return echo(owner, endpoint, body, ...rest);
  });
  const batch = await ended(second.service, id);
  expect(again).toEqual(['c', 'd']);
  expect((await linesOf(second.service, batch.output_file_id)).map(({ custom_id }) => custom_id)).toEqual([
    'a',
    'b',
    'c',
    'd',
  ]);
  expect(second.service.create('ann', asking(file.id), 'once').id).toBe(id);
  const other = { ...asking(file.id), metadata: { x: 'y' } };
  expect(() => second.service.create('ann', other, 'once')).toThrow(/Idempotency-Key/);
  expect(second.service.create('bob', asking((await upload(second.service, line('z'), 'bob')).id), 'once').id).not.toBe(
    id,
  );
});

test('waits for a busy server and a model that loads, and gives up on a lasting failure', async () => {
  const { service } = await open();
  const tries = new Map<string, number>();
  service.start(async (owner, endpoint, body, ...rest) => {
    const { n } = JSON.parse(body);
    const count = (tries.get(n) ?? 0) + 1;
    tries.set(n, count);
    if (n === 'busy' && count === 1) return new Response('{"error":{"code":"overloaded"}}', { status: 429 });
    if (n === 'loading' && count < 6) return Response.json({ error: { code: 'model_not_loaded' } }, { status: 500 });
    if (n === 'broken') return Response.json({ error: { code: 'engine_failed' } }, { status: 500 });
    return echo(owner, endpoint, body, ...rest);
  });
  const file = await upload(service, ['busy', 'loading', 'broken'].map((id) => line(id)).join('\n'));
  const batch = await ended(service, service.create('ann', asking(file.id)).id);
  expect(batch.request_counts).toEqual({ total: 3, completed: 2, failed: 1 });
  expect(Object.fromEntries(tries)).toEqual({ busy: 2, loading: 6, broken: 3 });
});

const RATE_LIMITED = () => Response.json({ error: { code: 'rate_limited' } }, { status: 429 });

test.each([
  ['waits for its quota', 0, (isDone: boolean) => !isDone && RATE_LIMITED()],
  ['has had its turn', 61_000, () => false as const],
])('a batch that %s gives its place to that of another key, and goes on later', async (_, ms, refusal) => {
  const { service, clock } = await open({ running: 1, inflight: 2 });
  const [begun, asked] = [Promise.withResolvers<void>(), [] as string[]];
  let bobs = '';
  const isDone = () => bobs !== '' && service.batch('bob', bobs).status === 'completed';
  service.start(async (owner, endpoint, body, ...rest) => {
    if (owner === 'ann') {
      begun.resolve();
      while (bobs === '') await new Promise(setImmediate);
      clock.ms += ms;
      const refused = refusal(isDone());
      if (refused) return refused;
    }
    asked.push(JSON.parse(body).n);
    return echo(owner, endpoint, body, ...rest);
  });
  const ids = Array.from({ length: 8 }, (_, i) => `a${i}`);
  const file = await upload(service, ids.map((id) => line(id)).join('\n'));
  const first = service.create('ann', asking(file.id)).id;
  const second = service.create('ann', asking(file.id)).id;
  await begun.promise;
  bobs = service.create('bob', asking((await upload(service, line('b'), 'bob')).id)).id;
  await ended(service, bobs, 'bob');
  expect(await ended(service, first)).toMatchObject({ status: 'completed', request_counts: { completed: 8 } });
  expect(await ended(service, second)).toMatchObject({ status: 'completed', request_counts: { completed: 8 } });
  expect(asked.indexOf('b')).toBeLessThan(ids.length);
  // No line was asked twice, although the first batch left in the middle.
  expect(asked.toSorted()).toEqual(['b', ...ids, ...ids].toSorted());
});

test('cancels a batch that gave way, at once', async () => {
  const { service } = await open({ running: 1 });
  const begun = Promise.withResolvers<void>();
  const never: AnswerLine = (...[, , , , signal]) =>
    new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason)));
  service.start(async (owner, ...rest) => {
    begun.resolve();
    return owner === 'ann' ? RATE_LIMITED() : never(owner, ...rest);
  });
  const { id } = service.create('ann', asking((await upload(service, line('a'))).id));
  await begun.promise;
  const other = service.create('bob', asking((await upload(service, line('b'), 'bob')).id)).id;
  await expect.poll(() => service.batch('bob', other).status).toBe('in_progress');
  service.cancel('ann', id);
  service.cancel('bob', other);
  await ended(service, other, 'bob');
  expect((await ended(service, id)).status).toBe('cancelled');
});

test('shows a key its own files and batches only, in pages', async () => {
  const { service } = await open();
  const mine: string[] = [];
  for (const id of ['a', 'b', 'c']) mine.push((await upload(service, line(id))).id);
  const theirs = await upload(service, line('t'), 'bob');
  for (const call of [
    () => service.file('ann', theirs.id),
    () => service.content('ann', theirs.id),
    () => service.create('ann', asking(theirs.id)),
    () => service.batch('ann', 'batch_0'),
    () => service.cancel('ann', 'batch_0'),
  ]) {
    expect(call).toThrow(expect.objectContaining({ code: 'not_found' }));
  }
  const page = service.files('ann', { limit: 2 });
  expect(page).toMatchObject({ data: [{ id: mine[2] }, { id: mine[1] }], more: true });
  expect(service.files('ann', { limit: 2, after: mine[1] })).toMatchObject({ data: [{ id: mine[0] }], more: false });
  expect(service.files('ann', { limit: 9, order: 'asc' }).data.map(({ id }) => id)).toEqual(mine);
  expect(service.files('ann', { limit: 9, purpose: 'batch_output' }).data).toEqual([]);
  await service.deleteFile('ann', mine[0]!);
  expect(service.files('ann', { limit: 9 }).data).toHaveLength(2);
});

test('bounds what a key stores and has open', async () => {
  const { service, clock } = await open({ files: 2, open: 1 });
  const file = await upload(service, line('a'));
  service.create('ann', asking(file.id));
  expect(() => service.create('ann', asking(file.id))).toThrow(expect.objectContaining({ code: 'rate_limited' }));
  await upload(service, line('b'));
  await expect(upload(service, line('c'))).rejects.toMatchObject({ code: 'disk_full' });
  const short = await service.upload(
    'bob',
    form({ purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' }, line('x')),
  );
  expect(short.expires_at).toBe(short.created_at + 3600);
  clock.ms += 3_600_000;
  expect(() => service.file('bob', short.id)).toThrow(expect.objectContaining({ code: 'not_found' }));
});

test('counts uploads that arrive, and answers, as what a key stores', async () => {
  const { service } = await open({ bytes: 1500, inflight: 1 });
  const slow = form({ purpose: 'batch' }, line('a'));
  const headers = { 'content-type': slow.headers.get('content-type') ?? '', 'content-length': '1500' };
  const first = service.upload('ann', new Request(slow.url, { ...sending(slow.body), headers }));
  await expect(upload(service, line('b'))).rejects.toMatchObject({ code: 'disk_full' });
  await upload(service, line('b'), 'bob');
  const file = await first;
  service.start(async () => Response.json({ text: 'x'.repeat(1000) }));
  const more = await upload(service, ['a', 'b', 'c'].map((id) => line(id)).join('\n'));
  await service.deleteFile('ann', file.id);
  const batch = await ended(service, service.create('ann', asking(more.id)).id);
  expect(batch.request_counts).toMatchObject({ total: 3, failed: 1 });
  expect(await linesOf(service, batch.error_file_id)).toMatchObject([{ custom_id: 'c', error: { code: 'disk_full' } }]);
});

test('can be read once it has stopped, and answers nothing any more', async () => {
  const { service } = await open();
  service.start(echo);
  await service.stop();
  const file = await upload(service, line('a'));
  const { id } = service.create('ann', asking(file.id));
  expect(service.file('ann', file.id).id).toBe(file.id);
  expect(service.batch('ann', id).status).toBe('validating');
});

test('forgets the oldest ended batches of a key', async () => {
  const { service } = await open({ ended: 2 });
  service.start(echo);
  const ids: string[] = [];
  for (const owner of ['ann', 'bob', 'ann', 'ann', 'ann']) {
    const file = await upload(service, line('a'), owner);
    ids.push((await ended(service, service.create(owner, asking(file.id)).id, owner)).id);
  }
  expect(service.batches('ann', { limit: 9 }).data.map(({ id }) => id)).toEqual([ids[4], ids[3], ids[2]]);
  expect(service.batches('bob', { limit: 9 }).data).toHaveLength(1);
});

test('keeps an expired file as long as a batch reads it', async () => {
  const { service, clock, home, close } = await open();
  const parts = { purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' };
  const file = await service.upload('ann', form(parts, line('a')));
  const { id } = service.create('ann', asking(file.id));
  await service.upload('ann', form(parts, line('b')));
  service.start(
    (...[, , , , signal]) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))),
  );
  await expect.poll(() => service.batch('ann', id).status).toBe('in_progress');
  await close();
  const later = await open({}, home);
  later.clock.ms = clock.ms + 3_600_000;
  later.service.start(echo);
  expect(await ended(later.service, id)).toMatchObject({ status: 'completed' });
});

test('reports a batch that cannot go on, answers others, and tries it again after a minute', async () => {
  const { service, home, stuck } = await open({ running: 1 });
  const file = await upload(service, line('a'));
  await rename(join(home, 'files', file.id), join(home, 'files', 'away'));
  service.start(echo);
  const { id } = service.create('ann', asking(file.id));
  await expect.poll(() => stuck.length).toBeGreaterThan(1);
  expect(stuck.slice(0, 2)).toEqual([
    { batch: id, waitedMs: 0 },
    { batch: id, waitedMs: 60_000 },
  ]);
  await rename(join(home, 'files', 'away'), join(home, 'files', file.id));
  expect(await ended(service, id)).toMatchObject({ status: 'completed' });
  const { id: other } = service.create('ann', asking((await upload(service, line('b'))).id));
  expect(await ended(service, other)).toMatchObject({ status: 'completed' });
});

test.each([
  ['is broken off', (content: Uint8Array) => content.slice(0, -40), 'error'],
  ['ends early', (content: Uint8Array) => content.slice(0, -40), 'end'],
])('keeps nothing of an upload that %s', async (_, cut, how) => {
  const { service, home } = await open();
  const whole = form({ purpose: 'batch' }, line('a').repeat(1000));
  const bytes = cut(new Uint8Array(await whole.clone().arrayBuffer()));
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes);
    },
    async pull(controller) {
      // The file is open by then.
      await expect.poll(async () => (await readdir(join(home, 'files'))).length).toBe(1);
      if (how === 'error') controller.error(new Error('gone'));
      else controller.close();
    },
  });
  const headers = { 'content-type': whole.headers.get('content-type') ?? '' };
  const broken = service.upload('ann', new Request(whole.url, { ...sending(body), headers }));
  await expect(broken).rejects.toMatchObject({ code: 'malformed_json' });
  expect(await readdir(join(home, 'files'))).toEqual([]);
});

test.each([
  [form({}, line('a')), 'invalid_value', 'purpose'],
  [form({ purpose: 'batch' }, line('a'), 'n'.repeat(256)), 'invalid_value', 'file'],
  [form({ purpose: 'fine-tune' }, line('a')), 'invalid_value', 'purpose'],
  [form({ purpose: 'batch' }, null), 'missing_field', 'file'],
  [
    form({ purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '5' }, 'x'),
    'invalid_value',
    'seconds',
  ],
  [
    new Request('http://x/', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }),
    'unsupported_media_type',
    undefined,
  ],
  [
    new Request('http://x/', {
      method: 'POST',
      body: 'broken',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    }),
    'malformed_json',
    undefined,
  ],
])('refuses an upload and stores nothing of it (%#)', async (request, code, param) => {
  const { service, home } = await open();
  await expect(service.upload('ann', request)).rejects.toMatchObject({ code, param });
  expect(await readdir(join(home, 'files'))).toEqual([]);
});
