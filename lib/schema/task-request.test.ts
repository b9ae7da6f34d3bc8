import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../errors.ts';
import { validate } from '../validation/validate.ts';
import { DecideRequest, ExtractRequest, RunTasksRequest } from './task-request.ts';

const decide = { type: 'decide', name: 'd', question: 'Angry?' };
const extract = { type: 'extract', name: 'e', instruction: 'The vendor' };
const batch = { model: 'assay/starter', context: 'Hello', tasks: [decide] };
const { context: _, ...bare } = batch;

/** Returns the request with these members; undefined removes one. */
const with_ = (changes: object, base: object = batch) => JSON.parse(JSON.stringify({ ...base, ...changes }));
const task = (changes: object, base: object = decide) => with_({ tasks: [with_(changes, base)] });
const message = (changes: object) => with_({ messages: [{ role: 'user', content: 'Hi', ...changes }] }, bare);
const part = (content: unknown) => message({ content: [content] });
const texts = (count: number) => Array.from({ length: count }, (_, i) => `o${i}`);
const tasks = (count: number) => texts(count).map((name) => ({ ...decide, name }));

describe('accepted', () => {
  test.each<[string, object]>([
    ['the least', batch],
    ['an empty context', with_({ context: '' })],
    ['messages instead of context', message({})],
    ['no name but id', task({ name: undefined, id: 'd' })],
    ['name and id, equal', task({ id: 'd' })],
    ['options and choices, equal', task({ options: ['a', 'b'], choices: ['a', 'b'] })],
    ['keys and fields, equal', task({ keys: ['a'], fields: ['a'] }, extract)],
    ['target_language and output_language, equal', with_({ target_language: 'de', output_language: 'de' })],
    ['output_language alone', with_({ output_language: 'de' })],
    ['target_language of a task', task({ target_language: 'no' })],
    ['a name of 64 characters', task({ name: `_${'a'.repeat(63)}` })],
    [
      'names such as 10, __proto__, constructor',
      with_({ tasks: ['10', '__proto__', 'constructor'].map((name) => ({ ...decide, name })) }),
    ],
    ['256 tasks', with_({ tasks: tasks(256) })],
    ['256 options', task({ options: texts(256) })],
    ['an option of 1,024 code points', task({ options: ['😀'.repeat(1024)] })],
    ['128 keys', task({ keys: texts(128) }, extract)],
    ['an empty instruction of a decide task', task({ instruction: '' })],
    ['temperature 0', with_({ temperature: 0 })],
    ['temperature 2', with_({ temperature: 2 })],
    ['max_output_tokens 1', with_({ max_output_tokens: 1 })],
    ['max_output_tokens 4096', with_({ max_output_tokens: 4096 })],
    ['response_format json_object', with_({ response_format: { type: 'json_object' } })],
    ['shorthand schema', task({ schema: { vendor: 'string', lines: [{ qty: 'integer' }] } }, extract)],
    ['JSON Schema', task({ schema: { type: 'object', properties: { a: { type: 'string' } } } }, extract)],
    ['keys that select of a schema', task({ schema: { a: 'string', b: 'string' }, keys: ['b'] }, extract)],
    [
      'roles',
      with_({ messages: ['system', 'developer', 'user', 'assistant'].map((role) => ({ role, content: '' })) }, bare),
    ],
    ['a name of a message', message({ name: 'Ada' })],
    ['part text', part({ type: 'text', text: '' })],
    ['part image_url', part({ type: 'image_url', image_url: { url: 'https://x.test/a.png' } })],
    [
      'part image_url with detail',
      part({ type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: 'auto' } }),
    ],
    [
      'part image',
      part({ type: 'image', image: { type: 'url', url: 'https://x.test/a.png', mime_type: 'image/png' } }),
    ],
    ['part audio', part({ type: 'audio', audio: { type: 'base64', data: 'AAAA', mime_type: 'audio/wav' } })],
    ['part input_audio', part({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } })],
    [
      'images and audio',
      with_({
        images: [{ type: 'base64', data: 'AA', mime_type: 'image/png' }],
        audio: [{ type: 'url', url: 'https://x.test/a' }],
      }),
    ],
    ['no images', with_({ images: [] })],
  ])('%s', (_, request) => {
    expect(validate(RunTasksRequest, request)).toMatchObject(request);
  });

  test('defaults', () => {
    expect(validate(RunTasksRequest, batch)).toEqual({
      ...batch,
      temperature: 0,
      max_output_tokens: 16,
      response_format: { type: 'json_object' },
    });
  });
});

describe('400: unknown fields and the input', () => {
  test.each<[string, unknown, ErrorCode, string | undefined]>([
    ['unknown field', with_({ top_p: 1 }), 'unknown_field', 'top_p'],
    ['stream: true', with_({ stream: true }), 'unknown_field', 'stream'],
    ['stream: null', with_({ stream: null }), 'unknown_field', 'stream'],
    ['__proto__', JSON.parse(`{"__proto__":{},${JSON.stringify(batch).slice(1)}`), 'unknown_field', '__proto__'],
    ['constructor', with_({ constructor: 1 }), 'unknown_field', 'constructor'],
    ['toString', with_({ toString: 1 }), 'unknown_field', 'toString'],
    ['in a task', task({ stream: false }), 'unknown_field', 'tasks[0].stream'],
    [
      '__proto__ in a task',
      with_({ tasks: [JSON.parse('{"type":"decide","name":"d","question":"q","__proto__":1}')] }),
      'unknown_field',
      'tasks[0].__proto__',
    ],
    ['a field of the other task type', task({ keys: ['a'] }), 'unknown_field', 'tasks[0].keys'],
    ['in a task of unknown type', task({ type: 'sum', x: 1 }), 'unknown_field', 'tasks[0].x'],
    ['in a message', message({ tool_calls: [] }), 'unknown_field', 'messages[0].tool_calls'],
    ['in a part', part({ type: 'text', text: '', url: '' }), 'unknown_field', 'messages[0].content[0].url'],
    [
      'in image_url',
      part({ type: 'image_url', image_url: { url: 'u', size: 1 } }),
      'unknown_field',
      'messages[0].content[0].image_url.size',
    ],
    ['in an image', with_({ images: [{ type: 'url', url: 'u', name: 'n' }] }), 'unknown_field', 'images[0].name'],
    [
      'in response_format',
      with_({ response_format: { type: 'json_object', schema: {} } }),
      'unknown_field',
      'response_format.schema',
    ],
    ['an odd name', with_({ 'a b': 1 }), 'unknown_field', '["a b"]'],
    ['a long name is cut', with_({ ['x'.repeat(500)]: 1 }), 'unknown_field', `["${'x'.repeat(64)}…"]`],
    ['neither context nor messages', bare, 'missing_input', undefined],
    ['both', with_({ messages: [{ role: 'user', content: 'Hi' }] }), 'conflicting_input', 'messages'],
    ['both, one of them null', with_({ messages: null }), 'conflicting_input', 'messages'],
    ['an empty object', {}, 'missing_input', undefined],
    ['the first of two', with_({ tasks: [{ ...decide, a: 1 }], b: 1 }), 'unknown_field', 'tasks[0].a'],
    [
      'before any value',
      with_({ model: 5, temperature: 9, tasks: [{ ...decide, question: '', a: 1 }] }),
      'unknown_field',
      'tasks[0].a',
    ],
    ['missing input before any value', with_({ model: 5 }, bare), 'missing_input', undefined],
  ])('%s', (_, request, code, param) => {
    expect(() => validate(RunTasksRequest, request)).toThrow(expect.objectContaining({ code, param }));
  });
});

describe('422: values', () => {
  test.each<[string, unknown, ErrorCode, string | undefined]>([
    ['a list', [], 'invalid_type', undefined],
    ['null', null, 'invalid_type', undefined],
    ['a string', 'x', 'invalid_type', undefined],
    ['no model', with_({ model: undefined }), 'missing_field', 'model'],
    ['model null', with_({ model: null }), 'invalid_type', 'model'],
    ['an empty model', with_({ model: '' }), 'invalid_value', 'model'],
    ['context null', with_({ context: null }), 'invalid_type', 'context'],
    ['context a list', with_({ context: ['x'] }), 'invalid_type', 'context'],
    ['no messages', with_({ messages: [] }, bare), 'invalid_value', 'messages'],
    ['messages a string', with_({ messages: 'x' }, bare), 'invalid_type', 'messages'],
    ['messages null', with_({ messages: null }, bare), 'invalid_type', 'messages'],
    ['role tool', message({ role: 'tool' }), 'invalid_value', 'messages[0].role'],
    ['role 5', message({ role: 5 }), 'invalid_type', 'messages[0].role'],
    ['no role', with_({ messages: [{ content: '' }] }, bare), 'missing_field', 'messages[0].role'],
    ['no content', with_({ messages: [{ role: 'user' }] }, bare), 'missing_field', 'messages[0].content'],
    ['content null', message({ content: null }), 'invalid_type', 'messages[0].content'],
    ['content an empty list', message({ content: [] }), 'invalid_value', 'messages[0].content'],
    ['a part of unknown type', part({ type: 'video' }), 'invalid_value', 'messages[0].content[0].type'],
    ['a part without type', part({}), 'missing_field', 'messages[0].content[0].type'],
    ['a part that is text', part('Hi'), 'invalid_type', 'messages[0].content[0]'],
    [
      'detail',
      part({ type: 'image_url', image_url: { url: 'u', detail: 'best' } }),
      'invalid_value',
      'messages[0].content[0].image_url.detail',
    ],
    [
      'image_url a string',
      part({ type: 'image_url', image_url: 'u' }),
      'invalid_type',
      'messages[0].content[0].image_url',
    ],
    ['type url without url', with_({ images: [{ type: 'url' }] }), 'missing_field', 'images[0].url'],
    [
      'type base64 without data',
      with_({ audio: [{ type: 'base64', mime_type: 'audio/wav' }] }),
      'missing_field',
      'audio[0].data',
    ],
    [
      'type base64 without mime_type',
      with_({ audio: [{ type: 'base64', data: 'AA' }] }),
      'missing_field',
      'audio[0].mime_type',
    ],
    [
      'type url with data',
      with_({ images: [{ type: 'url', url: 'u', data: 'AA' }] }),
      'invalid_value',
      'images[0].data',
    ],
    [
      'type base64 with url',
      with_({ images: [{ type: 'base64', data: 'AA', mime_type: 'image/png', url: 'u' }] }),
      'invalid_value',
      'images[0].url',
    ],
    ['an unknown media type', with_({ images: [{ type: 'file' }] }), 'invalid_value', 'images[0].type'],
    [
      'a part without data',
      part({ type: 'image', image: { type: 'base64', mime_type: 'image/png' } }),
      'missing_field',
      'messages[0].content[0].image.data',
    ],
    ['images null', with_({ images: null }), 'invalid_type', 'images'],
    ['temperature -0.1', with_({ temperature: -0.1 }), 'invalid_value', 'temperature'],
    ['temperature 2.1', with_({ temperature: 2.1 }), 'invalid_value', 'temperature'],
    ['temperature "0"', with_({ temperature: '0' }), 'invalid_type', 'temperature'],
    ['temperature null', with_({ temperature: null }), 'invalid_type', 'temperature'],
    ['temperature 1e999', { ...batch, temperature: JSON.parse('1e999') }, 'invalid_value', 'temperature'],
    ['max_output_tokens 0', with_({ max_output_tokens: 0 }), 'invalid_value', 'max_output_tokens'],
    ['max_output_tokens 4097', with_({ max_output_tokens: 4097 }), 'invalid_value', 'max_output_tokens'],
    ['max_output_tokens 1.5', with_({ max_output_tokens: 1.5 }), 'invalid_type', 'max_output_tokens'],
    [
      'max_output_tokens -1e999',
      { ...batch, max_output_tokens: JSON.parse('-1e999') },
      'invalid_type',
      'max_output_tokens',
    ],
    ['response_format text', with_({ response_format: { type: 'text' } }), 'invalid_value', 'response_format.type'],
    ['response_format without type', with_({ response_format: {} }), 'missing_field', 'response_format.type'],
    ['an unknown language', with_({ target_language: 'xx' }), 'invalid_value', 'target_language'],
    ['an unknown language of a task', task({ target_language: 'EN' }), 'invalid_value', 'tasks[0].target_language'],
    ['no tasks field', with_({ tasks: undefined }), 'missing_field', 'tasks'],
    ['no tasks', with_({ tasks: [] }), 'invalid_value', 'tasks'],
    ['257 tasks', with_({ tasks: tasks(257) }), 'invalid_value', 'tasks'],
    ['tasks an object', with_({ tasks: decide }), 'invalid_type', 'tasks'],
    ['a task that is null', with_({ tasks: [null] }), 'invalid_type', 'tasks[0]'],
    ['no task type', task({ type: undefined }), 'missing_field', 'tasks[0].type'],
    ['an unknown task type', task({ type: 'sum' }), 'invalid_value', 'tasks[0].type'],
    ['task type 5', task({ type: 5 }), 'invalid_type', 'tasks[0].type'],
    ['neither name nor id', task({ name: undefined }), 'missing_field', 'tasks[0].name'],
    ['an empty name', task({ name: '' }), 'invalid_value', 'tasks[0].name'],
    ['a name of 65 characters', task({ name: 'a'.repeat(65) }), 'invalid_value', 'tasks[0].name'],
    ['a name that begins with a dot', task({ name: '.a' }), 'invalid_value', 'tasks[0].name'],
    ['a name that ends with a line break', task({ name: 'a\n' }), 'invalid_value', 'tasks[0].name'],
    ['a name with a space', task({ name: 'a b' }), 'invalid_value', 'tasks[0].name'],
    ['an id that is no name', task({ name: undefined, id: 'a b' }), 'invalid_value', 'tasks[0].id'],
    ['no question', task({ question: undefined }), 'missing_field', 'tasks[0].question'],
    ['an empty question', task({ question: '' }), 'invalid_value', 'tasks[0].question'],
    ['no instruction', task({ instruction: undefined }, extract), 'missing_field', 'tasks[0].instruction'],
    ['an empty instruction', task({ instruction: '' }, extract), 'invalid_value', 'tasks[0].instruction'],
    ['instruction null', task({ instruction: null }), 'invalid_type', 'tasks[0].instruction'],
    ['no options', task({ options: [] }), 'invalid_value', 'tasks[0].options'],
    ['257 options', task({ options: texts(257) }), 'invalid_value', 'tasks[0].options'],
    ['257 choices', task({ choices: texts(257) }), 'invalid_value', 'tasks[0].choices'],
    ['an empty option', task({ options: ['a', ''] }), 'invalid_value', 'tasks[0].options[1]'],
    ['an option that is a number', task({ options: [1] }), 'invalid_type', 'tasks[0].options[0]'],
    ['an option of 1,025 code points', task({ options: ['😀'.repeat(1025)] }), 'invalid_value', 'tasks[0].options[0]'],
    ['options that repeat', task({ options: ['a', 'b', 'a'] }), 'invalid_value', 'tasks[0].options[2]'],
    ['no keys', task({ keys: [] }, extract), 'invalid_value', 'tasks[0].keys'],
    ['129 keys', task({ keys: texts(129) }, extract), 'invalid_value', 'tasks[0].keys'],
    ['keys that repeat', task({ fields: ['__proto__', '__proto__'] }, extract), 'invalid_value', 'tasks[0].fields[1]'],
    ['an empty key', task({ keys: [''] }, extract), 'invalid_value', 'tasks[0].keys[0]'],
    ['schema a list', task({ schema: [] }, extract), 'invalid_type', 'tasks[0].schema'],
    ['schema null', task({ schema: null }, extract), 'invalid_type', 'tasks[0].schema'],
    ['names that repeat', with_({ tasks: [decide, extract, decide] }), 'duplicate_task_name', 'tasks[2].name'],
    [
      'a name that repeats an id',
      with_({ tasks: [task({ name: undefined, id: 'd' }).tasks[0], decide] }),
      'duplicate_task_name',
      'tasks[1].name',
    ],
    [
      'an id that repeats a name',
      with_({ tasks: [decide, task({ name: undefined, id: 'd' }).tasks[0]] }),
      'duplicate_task_name',
      'tasks[1].id',
    ],
    ['name and id differ', task({ id: 'x' }), 'alias_conflict', 'tasks[0].id'],
    [
      'options and choices differ',
      task({ options: ['a', 'b'], choices: ['b', 'a'] }),
      'alias_conflict',
      'tasks[0].choices',
    ],
    ['keys and fields differ', task({ keys: ['a'], fields: ['b'] }, extract), 'alias_conflict', 'tasks[0].fields'],
    ['languages differ', with_({ target_language: 'de', output_language: 'en' }), 'alias_conflict', 'output_language'],
  ])('%s', (_, request, code, param) => {
    expect(() => validate(RunTasksRequest, request)).toThrow(expect.objectContaining({ code, param }));
  });
});

describe('the first issue in document order', () => {
  const badTask = { ...decide, name: 'x', question: '' };
  test.each<[string, unknown, ErrorCode, string]>([
    ['of two values', { temperature: 9, ...batch, max_output_tokens: 0 }, 'invalid_value', 'temperature'],
    [
      'of two values, sent the other way',
      { max_output_tokens: 0, ...batch, temperature: 9 },
      'invalid_value',
      'max_output_tokens',
    ],
    [
      'of two tasks',
      with_({ tasks: [decide, badTask, { ...decide, name: '' }] }),
      'invalid_value',
      'tasks[1].question',
    ],
    [
      'a missing field counts at the end of its object',
      { context: '', tasks: [badTask] },
      'invalid_value',
      'tasks[0].question',
    ],
    [
      'a repeated name before a later bad task',
      with_({ tasks: [decide, decide, badTask] }),
      'duplicate_task_name',
      'tasks[1].name',
    ],
    [
      'a bad task before a later repeated name',
      with_({ tasks: [decide, badTask, decide] }),
      'invalid_value',
      'tasks[1].question',
    ],
    [
      'too many tasks before the bad one behind them',
      with_({ tasks: [...tasks(257), badTask] }),
      'invalid_value',
      'tasks',
    ],
    [
      'an alias conflict before a later bad task',
      with_({ tasks: [{ ...decide, id: 'x' }, badTask] }),
      'alias_conflict',
      'tasks[0].id',
    ],
  ])('%s', (_, request, code, param) => {
    expect(() => validate(RunTasksRequest, request)).toThrow(expect.objectContaining({ code, param }));
  });

  test('an unsupported schema before a later bad value', () => {
    const unsupported = { ...extract, schema: { type: 'object', not: { type: 'null' } } };
    const request = with_({ tasks: [unsupported, badTask] });
    expect(() => validate(RunTasksRequest, request)).toThrow(
      expect.objectContaining({ code: 'unsupported_schema', param: 'tasks[0].schema.not' }),
    );
  });
});

describe('the flat requests', () => {
  const flatDecide = { model: 'assay/starter', context: 'Hello', question: 'Angry?' };
  const flatExtract = { model: 'assay/starter', context: 'Hello', instruction: 'The vendor' };

  test.each<[string, object]>([
    ['options', { options: ['a'] }],
    ['choices', { choices: ['a'] }],
    ['instruction', { instruction: 'Be kind.' }],
    ['output_language', { output_language: 'de' }],
    ['images', { images: [{ type: 'url', url: 'u' }] }],
  ])('DecideRequest takes %s', (_, changes) => {
    expect(validate(DecideRequest, { ...flatDecide, ...changes })).toMatchObject(changes);
  });

  test.each<[string, object]>([
    ['keys', { keys: ['a'] }],
    ['fields', { fields: ['a'] }],
    ['schema', { schema: { a: 'string' } }],
    ['output_language', { output_language: 'de' }],
  ])('ExtractRequest takes %s', (_, changes) => {
    expect(validate(ExtractRequest, { ...flatExtract, ...changes })).toMatchObject(changes);
  });

  test.each<[string, object, ErrorCode, string | undefined]>([
    ['tasks', { ...flatDecide, tasks: [decide] }, 'unknown_field', 'tasks'],
    ['name', { ...flatDecide, name: 'd' }, 'unknown_field', 'name'],
    ['keys', { ...flatDecide, keys: ['a'] }, 'unknown_field', 'keys'],
    ['stream', { ...flatDecide, stream: false }, 'unknown_field', 'stream'],
    ['neither context nor messages', { model: 'm', question: 'q' }, 'missing_input', undefined],
    ['both', { ...flatDecide, messages: [] }, 'conflicting_input', 'messages'],
    ['no question', { model: 'm', context: '' }, 'missing_field', 'question'],
    ['an empty question', { ...flatDecide, question: '' }, 'invalid_value', 'question'],
    ['temperature 3', { ...flatDecide, temperature: 3 }, 'invalid_value', 'temperature'],
    ['max_output_tokens 5000', { ...flatDecide, max_output_tokens: 5000 }, 'invalid_value', 'max_output_tokens'],
    ['different aliases', { ...flatDecide, options: ['a'], choices: ['b'] }, 'alias_conflict', 'choices'],
  ])('DecideRequest refuses: %s', (_, request, code, param) => {
    expect(() => validate(DecideRequest, request)).toThrow(expect.objectContaining({ code, param }));
  });

  test.each<[string, object, ErrorCode, string | undefined]>([
    ['question', { ...flatExtract, question: 'q' }, 'unknown_field', 'question'],
    ['options', { ...flatExtract, options: ['a'] }, 'unknown_field', 'options'],
    ['neither context nor messages', { model: 'm', instruction: 'i' }, 'missing_input', undefined],
    ['no instruction', { model: 'm', context: '' }, 'missing_field', 'instruction'],
    ['an empty instruction', { ...flatExtract, instruction: '' }, 'invalid_value', 'instruction'],
    ['different aliases', { ...flatExtract, keys: ['a'], fields: ['b'] }, 'alias_conflict', 'fields'],
  ])('ExtractRequest refuses: %s', (_, request, code, param) => {
    expect(() => validate(ExtractRequest, request)).toThrow(expect.objectContaining({ code, param }));
  });
});

test('messages say what to do and quote no value', () => {
  const said = (request: unknown) => {
    try {
      validate(RunTasksRequest, request);
    } catch (error) {
      return (error as Error).message;
    }
    return 'accepted';
  };
  expect(said(bare)).toBe('The request needs context or messages.');
  expect(said(with_({ temperature: 3 }))).toBe('temperature must be at most 2.');
  expect(said(with_({ response_format: { type: 'secret' } }))).toBe(
    'response_format.type must be one of: "json_object".',
  );
  expect(said(task({ type: 'secret' }))).toBe('tasks[0].type must be one of: "decide", "multi", "extract".');
  expect(said(task({ options: texts(300) }))).toBe('tasks[0].options must have at most 256 items.');
  expect(said(task({ question: '' }))).toBe('tasks[0].question must not be empty.');
  expect(said(with_({ model: {} }))).toBe('model must be a string.');
  expect(said('x')).toBe('The request must be an object.');
});
