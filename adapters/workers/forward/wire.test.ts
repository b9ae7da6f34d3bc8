import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chatRequest } from '../../../lib/chat/request.ts';
import { LIMITS } from '../../../lib/grammar/limits.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { ChatCompletionRequest } from '../../../lib/schema/chat-request.ts';
import { LANGUAGES } from '../../../lib/schema/language.ts';
import { ExtractRequest, RunTasksRequest } from '../../../lib/schema/task-request.ts';
import { batchOfExtraction, batchOfTasks } from '../../../lib/tasks/batch.ts';
import { validate } from '../../../lib/validation/validate.ts';
import { chatBody } from './backend.ts';
import { publicTasksRequest } from './task-answer.ts';

const runs = { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) };

const parsed = (text: string) => parseJson(new TextEncoder().encode(text));
const readTasks = (text: string) => batchOfTasks(validate(RunTasksRequest, parsed(text)));
const readChat = (text: string) => chatRequest(validate(ChatCompletionRequest, parsed(text)));

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const anyText = fc.string({ unit: 'grapheme', maxLength: 30 });
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const name = fc.oneof(
  fc.stringMatching(/^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,10}$/),
  fc.constantFrom('10', '2', '__proto__', 'constructor', 'toString'),
);
const distinct = (max: number) =>
  fc.uniqueArray(fc.oneof(words, fc.constantFrom('__proto__', '1', '0')), { minLength: 1, maxLength: max });

const source = fc.oneof(
  fc.record({ type: fc.constant('url'), url: words }),
  fc.record({ type: fc.constant('base64'), data: fc.base64String({ minLength: 4 }), mime_type: words }),
);
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text: anyText }),
  fc.record({
    type: fc.constant('image_url'),
    image_url: fc.record({ url: words, detail: fc.constantFrom('low', 'high', 'auto') }, { requiredKeys: ['url'] }),
  }),
  fc.record({ type: fc.constant('image'), image: source }),
  fc.record({ type: fc.constant('audio'), audio: source }),
  fc.record({
    type: fc.constant('input_audio'),
    input_audio: fc.record({ data: fc.base64String({ minLength: 4 }), format: fc.constantFrom('wav', 'mp3', 'x y') }),
  }),
);
const content = fc.oneof(anyText, fc.array(part, { minLength: 1, maxLength: 4 }));
const message = fc.record(
  { role: fc.constantFrom('system', 'developer', 'user', 'assistant'), content, name: words },
  { requiredKeys: ['role', 'content'] },
);

const language = maybe(fc.constantFrom(...LANGUAGES));
const decide = fc
  .record({
    name,
    question: words,
    options: maybe(distinct(6)),
    instruction: maybe(anyText),
    language,
    alias: fc.boolean(),
  })
  .map(({ options, language, alias, ...task }) => ({
    ...task,
    type: 'decide',
    [alias ? 'choices' : 'options']: options,
    target_language: language,
  }));

const scalar = fc.constantFrom('string', 'number', 'integer', 'boolean');
const field = fc.oneof(fc.stringMatching(/^[a-z]{1,6}$/), fc.constantFrom('10', '2', 'type', 'items'));
const shorthand = fc.letrec((tie) => ({
  node: fc.oneof({ maxDepth: 3 }, scalar, fc.tuple(tie('node')), tie('object')),
  // An object whose only member is `type` with a type name is JSON Schema.
  object: fc
    .dictionary(field, tie('node'), { minKeys: 1, maxKeys: 4 })
    .filter((fields) => Object.keys(fields).length > 1 || typeof fields.type !== 'string'),
}));
const jsonSchema = fc.constantFrom(
  { type: 'object' },
  { type: 'object', properties: { b: { type: 'string' }, a: { enum: ['x', 1, null] }, '10': {} }, required: ['a'] },
  { type: 'object', properties: { n: { $ref: '#/$defs/n' } }, $defs: { n: { type: ['integer', 'null'], minimum: 0 } } },
  { type: 'object', properties: { l: { type: 'array', items: { type: 'string', maxLength: 3 }, maxItems: 4 } } },
  { title: 'T', description: 'd', type: 'object', additionalProperties: { type: 'number', multipleOf: 0.5 } },
  {
    anyOf: [
      { type: 'object', properties: { a: { const: 1 } } },
      { type: 'object', properties: { b: { const: 2 } } },
    ],
  },
);
const shapes = fc.oneof(
  fc.constant({}),
  distinct(5).map((keys) => ({ keys })),
  distinct(5).map((fields) => ({ fields })),
  shorthand.object.map((schema) => ({ schema })),
  shorthand.object.map((schema) => ({ schema, keys: Object.keys(schema as object).reverse() })),
  jsonSchema.map((schema) => ({ schema })),
);
const extract = fc
  .record({ name, instruction: words, language, shape: shapes })
  .map(({ language, shape, ...task }) => ({ ...task, type: 'extract', target_language: language, ...shape }));

const tasksRequest = fc
  .record({
    model: words,
    input: fc.oneof(
      fc.record({ context: anyText }),
      fc.record({ messages: fc.array(message, { minLength: 1, maxLength: 4 }) }),
    ),
    images: maybe(fc.array(source, { maxLength: 3 })),
    audio: maybe(fc.array(source, { maxLength: 3 })),
    tasks: fc.uniqueArray(fc.oneof(decide, extract), { minLength: 1, maxLength: 5, selector: (task) => task.name }),
    temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
    max_output_tokens: maybe(fc.integer({ min: 1, max: 4096 })),
    language,
  })
  .map(({ input, language, ...request }) => ({ ...request, ...input, output_language: language }));

describe('tasksBody', () => {
  it('is read by a box as the same batch', () => {
    fc.assert(
      fc.property(tasksRequest, (request) => {
        const batch = readTasks(JSON.stringify(request));
        expect(readTasks(publicTasksRequest(batch))).toEqual(batch);
      }),
      runs,
    );
  });

  it.each([
    ['shorthand', '{"a":', '"string"', '}', LIMITS.schemaDepth / 2 - 1],
    ['JSON Schema', '{"type":"object","additionalProperties":', '{}', '}', LIMITS.schemaDepth - 1],
  ])('is read by a box although it contains the deepest %s that is accepted', (_, open, inner, close, levels) => {
    const request = (depth: number) =>
      `{"model":"a/b","context":"","instruction":"i","schema":${open.repeat(depth)}${inner}${close.repeat(depth)}}`;
    const readOne = (text: string) => batchOfExtraction(validate(ExtractRequest, parsed(text)));
    const batch = readOne(request(levels));
    expect(readTasks(publicTasksRequest(batch))).toEqual(batch);
    expect(() => readOne(request(levels + 1))).toThrow(/nested deeper/);
  });

  it('keeps members that an object would move or lose', () => {
    const text = `{"model":"a/b","context":"","tasks":[{"type":"extract","name":"__proto__","instruction":"i",
      "schema":{"__proto__":"string","10":"integer","a":"string"}}]}`;
    const batch = readTasks(text);
    const again = readTasks(publicTasksRequest(batch));
    expect(again).toEqual(batch);
    const [task] = again.tasks;
    const shape = task?.type === 'extract' && task.shape.kind === 'schema' ? task.shape.schema : {};
    expect(Object.keys(shape.properties ?? {})).toContain('__proto__');
  });
});

const chatFormat = fc.oneof(
  fc.constant(undefined),
  fc.constant({ type: 'text' }),
  fc.constant({ type: 'json_object' }),
  jsonSchema.map((schema) => ({ type: 'json_schema', json_schema: { name: 'x', schema } })),
);
const chat = fc
  .record({
    model: maybe(fc.constantFrom('assay/starter', 'a/b-c.d')),
    messages: fc.array(
      fc.oneof(message, fc.record({ role: fc.constant('assistant'), content: fc.constantFrom(null, undefined) })),
      { minLength: 1, maxLength: 5 },
    ),
    max_tokens: maybe(fc.integer({ min: 1, max: 1_048_576 })),
    temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
    top_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
    seed: maybe(fc.maxSafeInteger()),
    stop: maybe(fc.oneof(words, fc.array(words, { maxLength: 4 }))),
    presence_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    frequency_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
    response_format: chatFormat,
    stream: maybe(fc.boolean()),
  })
  .map((request) => (request.top_logprobs === undefined ? request : { ...request, logprobs: true }));

describe('chatBody', () => {
  it('is read by a box as the same request', () => {
    fc.assert(
      fc.property(chat, (request) => {
        const read = readChat(JSON.stringify(request));
        expect(readChat(chatBody(read))).toEqual(read);
      }),
      runs,
    );
  });
});
