import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Assay, AssayError, CONTRACT_FINGERPRINT, CONTRACT_VERSION, type FinishReason, type Task } from 'assay-client';

const QUESTION = { model: 'a/b', context: 'x', question: '?' };

async function asked(options: ConstructorParameters<typeof Assay>[0]): Promise<Request> {
  const requests: Request[] = [];
  const answer: typeof fetch = async (input, init) => {
    requests.push(new Request(input, init));
    return Response.json({ id: '1', choices: [{ finish_reason: 'stop' }], result: { value: 'yes' }, value: 'yes' });
  };
  await new Assay({ ...options, fetch: answer }).decide(QUESTION);
  return requests[0]!;
}

test('settings come from the arguments, else from the environment', async () => {
  process.env.ASSAY_URL = 'http://box:1/base/';
  process.env.ASSAY_API_KEY = 'from-environment';
  const one = await asked({});
  assert.equal(one.url, 'http://box:1/base/decide');
  assert.equal(one.headers.get('authorization'), 'Bearer from-environment');
  assert.equal(one.headers.get('user-agent'), `assay-typescript/${CONTRACT_VERSION}`);
  const other = await asked({ baseUrl: 'http://other:2', apiKey: 'given' });
  assert.equal(other.url, 'http://other:2/decide');
  assert.equal(other.headers.get('authorization'), 'Bearer given');
});

test('without a key nothing is sent', () => {
  delete process.env.ASSAY_API_KEY;
  assert.throws(() => new Assay(), AssayError);
});

test('a base URL needs its scheme', () => {
  assert.throws(() => new Assay({ baseUrl: '127.0.0.1:8080', apiKey: 'k' }), /is no base URL/);
});

test('a caller can leave, also while a retry waits', async () => {
  const busy: typeof fetch = async () => new Response('', { status: 429, headers: { 'retry-after': '30' } });
  const leave = new AbortController();
  const answer = new Assay({ apiKey: 'k', fetch: busy }).decide(QUESTION, { signal: leave.signal });
  setTimeout(() => leave.abort(new Error('left')), 20);
  await assert.rejects(answer, /left/);
});

test('the package tells what it was made from', () => {
  const contract = readFileSync(new URL('../../../openapi.json', import.meta.url));
  assert.equal(createHash('sha256').update(contract).digest('hex'), CONTRACT_FINGERPRINT);
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(version, CONTRACT_VERSION);
});

test('the package has the licence', () => {
  const licence = (folder: string) => readFileSync(new URL(`${folder}/LICENSE`, import.meta.url), 'utf8');
  assert.equal(licence('..'), licence('../../..'));
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json'], { encoding: 'utf8' });
  assert.match(packed, /"path": "LICENSE"/);
});

test('the types are those that a user would write', () => {
  const tasks: Task[] = [
    { type: 'decide', name: 'a', question: '?', options: ['yes'] },
    { type: 'extract', name: 'b', instruction: '!', keys: ['x'], target_language: 'uk' },
  ];
  // @ts-expect-error A decide task needs a question.
  tasks.push({ type: 'decide', name: 'c', instruction: '!' });
  // Checking `type` narrows the type of the task, and unknown finish reasons are allowed.
  const texts = tasks.map((task) => (task.type === 'extract' ? task.instruction : task.question));
  const reason: FinishReason = 'paused_for_thought';
  assert.deepEqual([texts[0], texts[1], reason], ['?', '!', 'paused_for_thought']);
});

test('the two decision formats, against the real server', async () => {
  const client = new Assay({ baseUrl: process.env.ASSAY_STARTER_URL!, apiKey: 'demo' });
  const text = 'The parcel came late. I want my money back.';
  const { answers } = await client.decisions({
    model: 'assay/starter',
    input: text,
    questions: [
      { type: 'predicate', name: 'refund', instructions: 'Does the customer want money back?' },
      { type: 'choice', instructions: 'Which team?', choices: [{ value: 'billing' }, { value: true }] },
      { type: 'score', instructions: 'How angry?', levels: [{ label: 'calm' }, { label: 'angry' }] },
      { type: 'extract', instructions: 'What came late?', keys: ['thing'] },
    ],
  });
  assert.deepEqual(
    answers.map(({ type }) => type),
    ['predicate', 'choice', 'score', 'extract'],
  );
  const [refund] = answers;
  assert.ok(refund?.type === 'predicate' && refund.probability > 0.5 && refund.name === 'refund');
  const named = await client.systemOne({
    model: 'assay/starter',
    state: { message: text },
    questions: { team: { type: 'choice', criteria: { billing: 'Payments', shipping: null } } },
  });
  const { team } = named.answers;
  assert.ok(team?.type === 'choice');
  const sum = Object.values(team.probabilities).reduce((total, probability) => total + probability, 0);
  assert.ok(Math.abs(sum - 1) < 1e-6);
  const extracted = await client.extractions({
    state: text,
    fields: { what: { type: 'text', instructions: 'What came late?' }, urgent: { type: 'boolean' } },
  });
  const { what, urgent } = extracted.answers;
  assert.ok(what?.type === 'text' && urgent?.type === 'boolean');
  assert.ok(what.span && [...text].slice(...(what.span as [number, number])).join('') === what.guess);
  await assert.rejects(client.decisions({ model: 'assay/starter', input: text, questions: [] }), {
    name: 'BadRequestError',
    code: 'invalid_value',
    param: 'questions',
  });
});
