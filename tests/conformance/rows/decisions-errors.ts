import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const path = '/v1/decisions';
const predicate = { type: 'predicate', instructions: 'Paid?' };
const choice = { type: 'choice', instructions: 'Which?', choices: [{ value: 'a' }, { value: 'b' }] };
const score = { type: 'score', instructions: 'How?', levels: [{ label: 'a' }, { label: 'b' }] };
const extract = { type: 'extract', instructions: 'The id.', keys: ['id'] };

/** A body that is refused before it reaches the backend, with the error body of OpenAI's interfaces. */
function refused(name: string, code: ErrorCode, param: string | null, json: unknown, status = 400): Row {
  const error = { type: 'invalid_request_error', code, param };
  return {
    name: `/v1/decisions: ${status} ${code}: ${name}`,
    request: { path, json },
    expect: { status, like: { error }, calls: [] },
  };
}
const body = (changes: object) => ({ model, input: 'x', questions: [predicate], ...changes });
const without = (name: string) => body({ [name]: undefined });
const bad = (name: string, code: ErrorCode, param: string, changes: object) =>
  refused(name, code, param, body(changes));
const badQuestion = (name: string, code: ErrorCode, at: string, question: unknown) =>
  bad(name, code, `questions[1]${at}`, { questions: [predicate, question] });
const badItem = (name: string, code: ErrorCode, at: string, ...items: unknown[]) =>
  bad(name, code, `input${at}`, { input: items });
const user = (content: unknown) => ({ role: 'user', content });

export const decisionsErrors: readonly Row[] = [
  refused('a list', 'invalid_type', null, [body({})]),
  refused('a text', 'invalid_type', null, 'x'),
  refused('null', 'invalid_type', null, null),
  refused('empty', 'missing_field', 'model', {}),
  refused('no model', 'missing_field', 'model', without('model')),
  refused('no input', 'missing_field', 'input', without('input')),
  refused('no questions', 'missing_field', 'questions', without('questions')),
  bad('model empty', 'invalid_value', 'model', { model: '' }),
  bad('model a number', 'invalid_type', 'model', { model: 5 }),
  bad('model null', 'invalid_type', 'model', { model: null }),
  bad('an unknown field', 'unknown_field', 'question', { question: [] }),
  bad('temperature, which decisions do not have', 'unknown_field', 'temperature', { temperature: 1 }),
  bad('orders 0', 'invalid_value', 'orders', { orders: 0 }),
  bad('orders 9', 'invalid_value', 'orders', { orders: 9 }),
  bad('orders 1.5', 'invalid_type', 'orders', { orders: 1.5 }),
  bad('abstain_below above 1', 'invalid_value', 'abstain_below', { abstain_below: 1.1 }),
  bad('abstain_below below 0', 'invalid_value', 'abstain_below', { abstain_below: -0.1 }),
  bad('abstain_below a text', 'invalid_type', 'abstain_below', { abstain_below: '0.5' }),
  bad('confidence of another name', 'invalid_value', 'confidence', { confidence: 'gini' }),
  bad('calibrated a number', 'invalid_type', 'calibrated', { calibrated: 1 }),
  bad('max_output_tokens 0', 'invalid_value', 'max_output_tokens', { max_output_tokens: 0 }),
  bad('max_output_tokens 4097', 'invalid_value', 'max_output_tokens', { max_output_tokens: 4097 }),

  bad('input a number', 'invalid_type', 'input', { input: 7 }),
  bad('input an object', 'invalid_type', 'input', { input: { role: 'user', content: 'x' } }),
  bad('input an empty list', 'invalid_value', 'input', { input: [] }),
  badItem('a text in the list', 'invalid_type', '[0]', 'x'),
  badItem('a role that nobody has', 'invalid_value', '[0].role', { role: 'robot', content: 'x' }),
  badItem('no role', 'missing_field', '[0].role', { content: 'x' }),
  badItem('no content', 'missing_field', '[0].content', { role: 'user' }),
  badItem('content empty', 'invalid_value', '[0].content', user([])),
  badItem('content a number', 'invalid_type', '[0].content', user(7)),
  badItem('a part of another kind', 'invalid_value', '[0].content[0].type', user([{ type: 'text', text: 'x' }])),
  badItem('a part without a type', 'missing_field', '[0].content[0].type', user([{ text: 'x' }])),
  badItem('input_text without text', 'missing_field', '[0].content[0].text', user([{ type: 'input_text' }])),
  badItem('input_image without address', 'missing_field', '[0].content[0].image_url', user([{ type: 'input_image' }])),
  badItem('input_audio without audio', 'missing_field', '[0].content[0].input_audio', user([{ type: 'input_audio' }])),
  badItem(
    'input_audio without format',
    'missing_field',
    '[0].content[0].input_audio.format',
    user([{ type: 'input_audio', input_audio: { data: 'UklGRg==' } }]),
  ),
  badItem(
    'input_audio and audio_url',
    'invalid_value',
    '[0].content[0].audio_url',
    user([{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' }, audio_url: 'data:,' }]),
  ),
  badItem('input_json of a text', 'invalid_type', '[0].content[0].data', user([{ type: 'input_json', data: 'x' }])),
  badItem(
    'input_image.detail',
    'invalid_value',
    '[0].content[0].detail',
    user([{ type: 'input_image', image_url: 'x', detail: 'huge' }]),
  ),
  badItem('an item of another type', 'invalid_value', '[0].type', { type: 'reasoning', content: 'x' }),
  badItem('a call without a name', 'missing_field', '[0].name', {
    type: 'function_call',
    call_id: 'c',
    arguments: '{}',
  }),
  badItem('a call without arguments', 'missing_field', '[0].arguments', {
    type: 'function_call',
    call_id: 'c',
    name: 'f',
  }),
  badItem('a custom call without input', 'missing_field', '[0].input', {
    type: 'custom_tool_call',
    call_id: 'c',
    name: 'f',
  }),
  badItem('an output without a call before it', 'invalid_value', '[0].call_id', {
    type: 'function_call_output',
    call_id: 'c',
    output: 'x',
  }),

  bad('questions empty', 'invalid_value', 'questions', { questions: [] }),
  bad('questions: 401 of them', 'invalid_value', 'questions', { questions: Array(401).fill(predicate) }),
  badQuestion('a text', 'invalid_type', '', 'Paid?'),
  badQuestion('no type', 'missing_field', '.type', { instructions: 'Paid?' }),
  badQuestion('a type of System One', 'invalid_value', '.type', { type: 'noul', instructions: 'Paid?' }),
  badQuestion('no instructions', 'missing_field', '.instructions', { type: 'predicate' }),
  badQuestion('instructions empty', 'invalid_value', '.instructions', { type: 'predicate', instructions: '' }),
  badQuestion('instructions an empty list', 'invalid_value', '.instructions', { type: 'predicate', instructions: [] }),
  badQuestion('an unknown field', 'unknown_field', '.choices', { ...predicate, choices: [] }),
  badQuestion('name a number', 'invalid_type', '.name', { ...predicate, name: 1 }),
  badQuestion('name too long', 'invalid_value', '.name', { ...predicate, name: 'x'.repeat(1025) }),
  badQuestion('criteria of another name', 'unknown_field', '.criteria.yes', { ...predicate, criteria: { yes: 'x' } }),
  badQuestion('no choice', 'invalid_value', '.choices', { ...choice, choices: [] }),
  badQuestion('256 choices', 'invalid_value', '.choices', {
    ...choice,
    choices: Array.from({ length: 256 }, (_, i) => ({ value: `${i}` })),
  }),
  badQuestion('choices as texts', 'invalid_type', '.choices[0]', { ...choice, choices: ['a', 'b'] }),
  badQuestion('a choice twice', 'invalid_value', '.choices[1].value', {
    ...choice,
    choices: [{ value: 'a' }, { value: 'a' }],
  }),
  badQuestion('true twice', 'invalid_value', '.choices[1].value', {
    ...choice,
    choices: [{ value: true }, { value: true }],
  }),
  badQuestion('a choice that is a number', 'invalid_type', '.choices[0].value', {
    ...choice,
    choices: [{ value: 1 }, { value: 2 }],
  }),
  badQuestion('a choice that is empty', 'invalid_value', '.choices[0].value', {
    ...choice,
    choices: [{ value: '' }, { value: 'b' }],
  }),
  badQuestion('a choice too long', 'invalid_value', '.choices[0].value', {
    ...choice,
    choices: [{ value: 'x'.repeat(1025) }, { value: 'b' }],
  }),
  badQuestion('a choice without a value', 'missing_field', '.choices[0].value', {
    ...choice,
    choices: [{}, { value: 'b' }],
  }),
  badQuestion('no choices', 'missing_field', '.choices', { type: 'choice', instructions: 'Which?' }),
  badQuestion('no level', 'invalid_value', '.levels', { ...score, levels: [] }),
  badQuestion('a level twice', 'invalid_value', '.levels[1].label', {
    ...score,
    levels: [{ label: 'a' }, { label: 'a' }],
  }),
  badQuestion('levels as texts', 'invalid_type', '.levels[0]', { ...score, levels: ['a', 'b'] }),
  badQuestion('a level with a value', 'unknown_field', '.levels[0].value', {
    ...score,
    levels: [{ label: 'a', value: 0 }, { label: 'b' }],
  }),
  badQuestion('keys empty', 'invalid_value', '.keys', { ...extract, keys: [] }),
  badQuestion('a key twice', 'invalid_value', '.keys[1]', { ...extract, keys: ['a', 'a'] }),
  badQuestion('a schema that no answer could be held to', 'unsupported_schema', '.schema.not', {
    ...extract,
    keys: undefined,
    schema: { not: { type: 'null' } },
  }),
  badQuestion('a key that the schema lacks', 'invalid_value', '.keys[0]', {
    ...extract,
    keys: ['b'],
    schema: { a: 'string' },
  }),
];
