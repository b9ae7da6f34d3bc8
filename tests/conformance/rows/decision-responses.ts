import type { Row } from '../row.ts';

const model = 'assay/starter';
const context = 'I want my money back!';
/** Hash of a NUL and the context (`hash64`). */
const HASH = 'f779d1c38eeb5241';
const task = (name: string) => ({ type: 'decide', name, question: 'Angry?' });
const batch = (...names: string[]) => ({ path: '/v1/tasks', json: { model, context, tasks: names.map(task) } });
const usage = { promptTokens: 40, completionTokens: 3 };
const wireUsage = '"usage":{"prompt_tokens":40,"completion_tokens":3,"total_tokens":43}';
const choices = (content: string, reason = 'stop') =>
  `"choices":[{"message":{"role":"assistant","content":${JSON.stringify(content)}},"finish_reason":"${reason}"}]`;
const head = '{"id":"generated-id","model":"assay/starter"';

const LONG_NAMES = Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(64, 'x'));

/** The whole body of `/v1/tasks`, as text, so that the order of members counts. */
const tasksText = (results: string) =>
  `${head},${choices(results)},"results":${results},"tasks":${results},${wireUsage}}`;

const ordered = (name: string, names: string[], answers: string[], results: string): Row => ({
  name,
  script: { tasks: { answers, usage } },
  request: batch(...names),
  expect: { text: tasksText(results), headers: { 'content-type': /^application\/json/ } },
});

const decideRequest = { path: '/decide', json: { model, context, question: 'Angry?' } };
const extractRequest = { path: '/extract', json: { model, context, instruction: 'The order.', keys: ['10', '1'] } };

/** docs/interface.md, D-23 to D-29. */
export const decisionResponses: readonly Row[] = [
  {
    name: 'the hash of the context, whichever model and task; x-session-id is passed to the backend (D-36)',
    request: {
      path: '/decide',
      json: { model: 'some/other', context, question: 'Angry?' },
      headers: { 'x-session-id': 'case 7' },
    },
    expect: { headers: { 'assay-context-hash': HASH }, calls: [{ call: 'runTasks', session: 'case 7' }, 'admit'] },
    next: [
      { request: batch('a', 'b'), expect: { headers: { 'assay-context-hash': HASH } } },
      {
        request: { ...batch('a'), headers: { 'x-session-id': 'x'.repeat(257) } },
        expect: { headers: { 'assay-context-hash': HASH } },
      },
    ],
    skip: { hosts: ['edge'], because: 'the edge uses the session itself' },
  },
  ordered('RunTasksResponse: every field', ['a'], ['{"value":"yes"}'], '{"a":{"value":"yes"}}'),
  ordered(
    'results: the order sent, also for names such as 10',
    ['b', '10', '1', 'a'],
    ['{"value":"1"}', '{"value":"2"}', '{"value":"3"}', '{"value":"4"}'],
    '{"b":{"value":"1"},"10":{"value":"2"},"1":{"value":"3"},"a":{"value":"4"}}',
  ),
  ordered(
    'results: names of the prototype are entries like others',
    ['__proto__', 'constructor', 'toString'],
    ['{"value":"a"}', '{"value":"b"}', '{"value":"c"}'],
    '{"__proto__":{"value":"a"},"constructor":{"value":"b"},"toString":{"value":"c"}}',
  ),
  ordered(
    'results: members of an answer stay in order, and what needs escapes is escaped in content',
    ['a'],
    ['{"2":"\\"x\\"","1":null,"__proto__":"\\u2028"}'],
    '{"a":{"2":"\\"x\\"","1":null,"__proto__":"\\u2028"}}',
  ),
  {
    name: '/v1/decide-extract: the same as /v1/tasks',
    script: { tasks: { answers: ['{"value":"yes"}'], usage } },
    request: { ...batch('a'), path: '/v1/decide-extract' },
    expect: { text: tasksText('{"a":{"value":"yes"}}') },
  },
  {
    name: 'results: one entry for each task, 256 of them',
    script: { tasks: { usage } },
    request: batch(...Array.from({ length: 256 }, (_, i) => `${255 - i}`)),
    expect: {
      text: tasksText(`{${Array.from({ length: 256 }, (_, i) => `"${255 - i}":{"value":"yes"}`).join(',')}}`),
    },
  },
  ...(['stop', 'length', 'content_filter'] as const).map((finishReason) => ({
    name: `Choice.finish_reason ${finishReason} is a success`,
    script: { tasks: { finishReason } },
    request: batch('a'),
    expect: { like: { choices: [{ finish_reason: finishReason }] } },
  })),
  {
    name: 'Assay-Cut-Tasks names the tasks whose answers were cut',
    script: { tasks: { finishReason: 'length', cut: { names: ['a', '__proto__'], more: 0 } } },
    request: batch('a', '10', '__proto__'),
    expect: { headers: { 'assay-cut-tasks': 'a, __proto__' }, like: { choices: [{ finish_reason: 'length' }] } },
  },
  {
    name: 'Assay-Cut-Tasks counts what it has no room for',
    script: { tasks: { finishReason: 'length', cut: { names: LONG_NAMES, more: 0 } } },
    request: batch(...LONG_NAMES),
    expect: { headers: { 'assay-cut-tasks': new RegExp(`^${LONG_NAMES.slice(0, 30).join(', ')}, \\+70$`) } },
  },
  {
    name: 'Assay-Cut-Tasks is absent where no answer was cut',
    script: { tasks: {} },
    request: batch('a'),
    expect: { headers: { 'assay-cut-tasks': null } },
  },
  {
    name: 'DecideResponse: every field; result, decision and value agree',
    script: { tasks: { answers: ['{"value":"yes","reason":"It says so."}'], usage } },
    request: decideRequest,
    expect: {
      text:
        `${head},${choices('{"value":"yes","reason":"It says so."}')},"result":{"value":"yes","reason":"It says so."},` +
        `"decision":{"value":"yes","reason":"It says so."},"value":"yes",${wireUsage}}`,
    },
  },
  {
    name: 'DecideResponse.value: what needs escapes',
    script: { tasks: { answers: ['{"value":"\\"value\\":}\\\\"}'] } },
    request: decideRequest,
    expect: { like: { value: '"value":}\\', result: { value: '"value":}\\' }, decision: { value: '"value":}\\' } } },
  },
  {
    name: 'a decision cut off: an empty value, finish_reason length',
    script: { tasks: { answers: ['{"value":""}'], finishReason: 'length' } },
    request: decideRequest,
    expect: { like: { value: '', choices: [{ finish_reason: 'length' }] } },
  },
  {
    name: 'ExtractResponse: every field; result and data agree, keys in order',
    script: { tasks: { answers: ['{"10":"a","1":null}'], usage } },
    request: extractRequest,
    expect: {
      text:
        `${head},${choices('{"10":"a","1":null}')},"result":{"10":"a","1":null},` +
        `"data":{"10":"a","1":null},${wireUsage}}`,
    },
  },
  {
    name: 'id is the request id',
    request: { ...batch('a'), headers: { 'x-request-id': 'r:1' } },
    expect: { like: { id: 'r:1' }, headers: { 'x-request-id': 'r:1' } },
  },
];
