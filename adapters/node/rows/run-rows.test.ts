import { existsSync } from 'node:fs';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { parquetWriteFile } from 'hyparquet-writer';
import { expect, test } from 'vitest';
import { AssayError } from '../../../lib/errors.ts';
import { NoServerError } from '../cli/exit-code.ts';
import type { Connection, RequestOptions } from '../cli/request.ts';
import type { AskedKind } from './answer-columns.ts';
import { type RowsRun, runRows } from './run-rows.ts';

const folder = () => mkdtemp(join(tmpdir(), 'assay-rows-'));
const MODEL = 'acme/one';

type Answer = (body: Record<string, unknown>, path: string) => string | Promise<string>;

/** Creates a connection to a server that answers as `answer` does; `asked` gets the bodies of its requests. */
function server(answer: Answer, { fingerprint = 'f1' } = {}) {
  const asked: Record<string, unknown>[] = [];
  const connection: Connection = {
    url: 'http://127.0.0.1:1',
    close: async () => undefined,
    async request(path: string, options: RequestOptions = {}) {
      if (path === '/v1/models') {
        const model = { id: MODEL, object: 'model', created: 0, owned_by: 'acme', status: 'active', fingerprint };
        return Response.json({ object: 'list', data: [model] });
      }
      expect(options.priority).toBe('batch');
      const body = JSON.parse(options.json ?? '');
      asked.push(body);
      return new Response(await answer(body, path));
    },
  };
  return { connection, asked };
}

const results = (value: object, reason = 'stop') =>
  JSON.stringify({ model: MODEL, choices: [{ finish_reason: reason }], results: value });
const answers = (value: object) => JSON.stringify({ model: MODEL, answers: value });
const echo: Answer = ({ context }) => results({ a: { value: context } });

const TASKS = {
  kind: 'tasks' as AskedKind,
  asked: [{ name: 'a', type: 'decide' }],
  request: new Map([['tasks', '[1]']]),
};

async function run(
  { connection }: ReturnType<typeof server>,
  options: Partial<RowsRun> & Pick<RowsRun, 'rows' | 'out'>,
) {
  const all = { ...TASKS, concurrency: 4, restart: false, ...options };
  return runRows(all, connection, MODEL, { progress: () => undefined, signal: new AbortController().signal });
}

async function files(name: string, content: string, out = 'out.jsonl') {
  const base = await folder();
  const rows = join(base, name);
  await writeFile(rows, content);
  return { rows, out: join(base, out) };
}

test('keeps the columns of JSON lines as they are written, and adds the answers', async () => {
  const both = await files(
    'in.jsonl',
    '\uFEFF{"10": 1.0, "text": "x", "big": 12345678901234567890}\r\n\n{"text":"\\u00e9"}\n[1]\n{"text":null}\n{"text":"z"',
  );
  const counts = await run(server(echo), { ...both, stateColumn: 'text' });
  expect(counts).toEqual({ total: 5, done: 5, before: 0, errors: 3, cut: 0 });
  expect((await readFile(both.out, 'utf8')).split('\n')).toEqual([
    '{"10":1.0,"text":"x","big":12345678901234567890,"a":{"value":"x"}}',
    '{"text":"\\u00e9","a":{"value":"é"}}',
    '{"error":{"code":"malformed_json","message":"Line 4 is not a JSON object."}}',
    '{"text":null,"error":{"code":"missing_input","message":"The row has no text.","param":"text"}}',
    '{"error":{"code":"malformed_json","message":"Line 6 is not a JSON object."}}',
    '',
  ]);
});

test.each([
  ['tasks', 'context', '{"n":1,"t":"x"}'],
  ['questions', 'state', { n: 1, t: 'x' }],
  ['fields', 'state', { n: 1, t: 'x' }],
] as const)('asks %s about the whole row without a column for the text', async (kind, member, state) => {
  const both = await files('in.jsonl', '{"n":1,"t":"x"}\n');
  const one = server(() => (kind === 'tasks' ? results({}) : answers({})));
  await run(one, { ...both, kind, asked: [], request: new Map([[kind, '{}']]) });
  expect(one.asked).toEqual([{ model: MODEL, [kind]: {}, [member]: state }]);
});

test('writes tables with a column for each value, from quoted cells', async () => {
  const both = await files('in.csv', 'id,text\n1,"a, ""b""\nc"\n2,,3\n3,x\n', 'out.tsv');
  await run(server(echo), { ...both, stateColumn: 'text' });
  expect(await readFile(both.out, 'utf8')).toBe(
    'id\ttext\ta\terror\n1\t"a, ""b""\nc"\t"a, ""b""\nc"\t\n\t\t\tmalformed_json: The row at line 4 has 3 fields; there are 2 columns.\n3\tx\tx\t\n',
  );
});

test('writes what is known about an answer in columns of its own', async () => {
  const both = await files('in.jsonl', '{"s":"x"}\n{"s":"y"}\n', 'out.csv');
  const asked = [
    { name: 'n', type: 'noul' },
    { name: 'c', type: 'choice' },
    { name: 'e', type: 'extract' },
    { name: 't', type: 'number' },
    { name: 'l', type: 'list' },
  ];
  const answer = answers({
    n: { type: 'noul', noul: 0.25 },
    c: { type: 'choice', choice: 'b', probabilities: { a: 0.25, b: 0.75 }, confidence: 0.5, x_abstained: true },
    e: { type: 'extract', data: { who: 'Bo', lines: [1, 2] }, fields: [], complete: true },
    t: { type: 'number', value: null, guess: 3, p_null: 0.75, confidence: 0.5 },
    l: { type: 'list', value: ['p', 'q'], confidence: 0.5, confidences: [] },
  });
  await run(
    server(() => answer),
    { ...both, kind: 'fields', asked, request: new Map([['fields', '{}']]), stateColumn: 's' },
  );
  const [head, first] = (await readFile(both.out, 'utf8')).split('\n');
  expect(head).toBe('s,n,c,c_p,c_confidence,c_abstained,e_who,e_lines,t,t_p_null,t_confidence,l,l_confidence,error');
  expect(first).toBe('x,0.25,b,0.75,0.5,true,Bo,"[1,2]",,0.75,0.5,"[""p"",""q""]",0.5,');
});

test('reads and writes Parquet, whose columns keep their types and digits', async () => {
  const base = await folder();
  const [rows, out] = [join(base, 'in.parquet'), join(base, 'out.parquet')];
  const big = 9007199254740993n;
  parquetWriteFile({
    filename: rows,
    columnData: [
      { name: 'text', data: ['x', 'y', null], type: 'STRING' },
      { name: 'big', data: [big, null, 1n], type: 'INT64' },
      { name: 'at', data: [1_700_000_000_000_001n, 0n, null] },
      { name: 'tags', data: [{ a: [1] }, null, { a: [] }], type: 'JSON' },
      { name: 'raw', data: [new Uint8Array([255, 1]), null, new Uint8Array()], type: 'BYTE_ARRAY' },
    ].map((column) => column as never),
  });
  const source = await parquetMetadataAsync(await asyncBufferFromFile(rows));
  const seen = server(({ context }) => results({ a: { value: String(context).length } }));
  await run(seen, { rows, out });
  expect(seen.asked[0]?.context).toBe(
    '{"text":"x","big":"9007199254740993","at":1700000000000001,"tags":{"a":[1]},"raw":"/wE="}',
  );
  const file = await asyncBufferFromFile(out);
  const { schema } = await parquetMetadataAsync(file);
  for (const element of source.schema.slice(1)) expect(schema).toContainEqual(element);
  const [first, second] = await parquetReadObjects({ file, utf8: false });
  expect(first).toMatchObject({
    text: 'x',
    big,
    at: 1_700_000_000_000_001n,
    tags: { a: [1] },
    raw: new Uint8Array([255, 1]),
  });
  expect(second).toMatchObject({ text: 'y', big: null, tags: null, raw: null, a: expect.any(Number), error: null });
});

test('continues an interrupted run without asking again, and refuses another one', async () => {
  const both = await files('in.jsonl', '{"text":"0"}\n{"text":"1"}\n{"text":"2"}\n');
  const options = { ...both, stateColumn: 'text', concurrency: 1 };
  const broken = server(({ context }) => {
    if (context === '2') throw new AssayError('invalid_api_key', 'no');
    return results({ a: { value: context } });
  });
  await expect(run(broken, options)).rejects.toThrow('no');
  expect(existsSync(both.out)).toBe(false);
  const other = { ...TASKS, request: new Map([['tasks', '[2]']]) };
  await expect(run(server(echo), { ...options, ...other })).rejects.toThrow(/checkpoint of another run: tasks differs/);
  await expect(run(server(echo), { ...options, limit: 2 })).rejects.toThrow(/rows to ask differs/);
  await expect(run(server(echo, { fingerprint: 'f2' }), options)).rejects.toThrow(/model differs/);
  const whole = server(echo);
  expect(await run(whole, options)).toMatchObject({ total: 3, before: 2, errors: 0 });
  expect(whole.asked).toHaveLength(1);
  const text = await readFile(both.out, 'utf8');
  expect(text.split('\n').map((line) => line && JSON.parse(line).a.value)).toEqual(['0', '1', '2', '']);
  // Complete: nothing is asked again.
  expect(await run(whole, options)).toMatchObject({ total: 3, before: 3 });
  await writeFile(both.rows, '{"text":"0"}\n');
  await expect(run(whole, options)).rejects.toThrow(/input differs/);
  await run(whole, { ...options, restart: true });
  expect(whole.asked).toHaveLength(2);
});

test('replaces no file that another command wrote', async () => {
  const both = await files('in.jsonl', '{"text":"0"}\n');
  await writeFile(both.out, 'mine');
  await expect(run(server(echo), both)).rejects.toThrow(/exists/);
  expect(await readFile(both.out, 'utf8')).toBe('mine');
});

test('asks rows with errors again when the same command is repeated', async () => {
  const both = await files('in.jsonl', '{"text":"0"}\n{"text":"1"}\n');
  const options = { ...both, stateColumn: 'text' };
  const picky = server((body, path) => {
    if (body.context === '1') throw new AssayError('input_too_long', 'too long');
    return echo(body, path);
  });
  expect(await run(picky, options)).toMatchObject({ errors: 1 });
  const better = server(echo);
  expect(await run(better, options)).toMatchObject({ errors: 0, before: 1 });
  expect(better.asked).toHaveLength(1);
  expect(await readFile(both.out, 'utf8')).toBe('{"text":"0","a":{"value":"0"}}\n{"text":"1","a":{"value":"1"}}\n');
});

test('waits for a busy server and one that has gone, and makes a row of a lasting failure', async () => {
  const both = await files('in.jsonl', '{"text":"busy"}\n{"text":"gone"}\n{"text":"bad"}\n');
  const tries = new Map<unknown, number>();
  const shaky = server(({ context }) => {
    const count = (tries.get(context) ?? 0) + 1;
    tries.set(context, count);
    if (context === 'busy' && count === 1) throw new AssayError('overloaded', 'busy', { retryAfterSeconds: 0.01 });
    if (context === 'gone' && count === 1) throw new NoServerError('gone');
    if (context === 'bad') throw new AssayError('engine_failed', 'It fails.');
    return results({ a: { value: context } });
  });
  const options = { ...both, stateColumn: 'text' };
  expect(await run(shaky, options)).toMatchObject({ errors: 1, done: 3 });
  expect(Object.fromEntries(tries)).toEqual({ busy: 2, gone: 2, bad: 3 });
  expect((await readFile(both.out, 'utf8')).split('\n')[2]).toBe(
    '{"text":"bad","error":{"code":"engine_failed","message":"It fails."}}',
  );
});

test.each([
  ['an invalid question', new AssayError('unsupported_schema', 'bad schema', { param: 'tasks[0].schema' })],
  ['an unknown model', new AssayError('model_not_found', 'no such model')],
])('ends at once with %s', async (_, error) => {
  const both = await files('in.jsonl', '{"text":"0"}\n'.repeat(50));
  const wrong = server(() => {
    throw error;
  });
  await expect(run(wrong, { ...both, concurrency: 2 })).rejects.toBe(error);
  expect(wrong.asked.length).toBeLessThan(5);
});

test('asks about the first rows, or about the same sample of all, in their order', async () => {
  const both = await files('in.jsonl', Array.from({ length: 100 }, (_, i) => `{"i":${i}}\n`).join(''));
  const asked = async (out: string, options: Partial<RowsRun>) => {
    await run(server(echo), { rows: both.rows, out: `${both.out}${out}.jsonl`, ...options });
    const text = await readFile(`${both.out}${out}.jsonl`, 'utf8');
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).i as number);
  };
  expect(await asked('1', { limit: 3 })).toEqual([0, 1, 2]);
  const sample = await asked('2', { sample: 10 });
  expect(sample).toHaveLength(10);
  expect(sample).toEqual(sample.toSorted((a, b) => a - b));
  expect(await asked('3', { sample: 10 })).toEqual(sample);
  expect(Math.max(...sample)).toBeGreaterThan(50);
  expect(await asked('4', { sample: 1000 })).toHaveLength(100);
});

test('marks and counts answers that were cut', async () => {
  const both = await files('in.jsonl', '{"text":"0"}\n');
  expect(
    await run(
      server(() => results({ a: { value: '' } }, 'length')),
      both,
    ),
  ).toMatchObject({ cut: 1 });
  expect(await readFile(both.out, 'utf8')).toBe('{"text":"0","a":{"value":""},"finish_reason":"length"}\n');
});

test.each([
  ['in.txt', '', {}, /must end with/],
  ['in.jsonl', '\n\n', {}, /has no rows/],
  ['in.jsonl', '{"text":1}\n', { stateColumn: 'nope' }, /No row .* has the column nope/],
  ['in.jsonl', '{"a":1}\n', {}, /The column a .* has the name/],
  ['in.jsonl', '{"error":1}\n', {}, /The column error/],
  ['in.csv', 'a_p,b\n1,2\n', { out: 'out.csv' }, /The column a_p/],
  ['in.csv', 'b,b\n1,2\n', {}, /two columns are named b/],
  ['in.csv', 'b,c\n"1,2\n', {}, /in.csv .*[Qq]uote/],
  ['in.parquet', 'no parquet', {}, /in.parquet/],
  ['none', null, { rows: '/nonexistent/x.csv' }, /does not exist/],
  ['in.jsonl', '{"text":1}\n', { out: '/nonexistent/x.csv' }, /is not a folder/],
])('says what is wrong with a file (%#)', async (name, content, options: Partial<RowsRun>, message) => {
  const both = await files(name, content ?? '');
  const out = options.out && !options.out.startsWith('/') ? { out: both.out.replace('.jsonl', '.csv') } : {};
  await expect(run(server(echo), { ...both, ...options, ...out })).rejects.toThrow(message);
});
