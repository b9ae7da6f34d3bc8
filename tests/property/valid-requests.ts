import fc from 'fast-check';
import { LANGUAGES } from '../../lib/schema/language.ts';
import { TASK_NAME } from '../../lib/schema/task-fields.ts';

/** Generates valid requests of the decision service; every field occurs. */

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const someText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const texts = (maxLength: number) => fc.uniqueArray(someText, { minLength: 1, maxLength });
const language = fc.constantFrom(...LANGUAGES);
const taskName = fc.oneof(
  fc.constantFrom('10', '__proto__', 'constructor', 'toString', '1'),
  fc.stringMatching(TASK_NAME, { size: 'small' }),
);

const media = fc.oneof(
  fc.record({ type: fc.constant('url'), url: fc.webUrl() }),
  fc.record({
    type: fc.constant('base64'),
    data: fc.base64String({ minLength: 4 }),
    mime_type: fc.constant('image/png'),
  }),
);
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.record({
    type: fc.constant('image_url'),
    image_url: fc.record({ url: fc.webUrl(), detail: fc.constant('auto') }, { requiredKeys: ['url'] }),
  }),
  fc.record({ type: fc.constant('image'), image: media }),
  fc.record({ type: fc.constant('audio'), audio: media }),
  fc.record({
    type: fc.constant('input_audio'),
    input_audio: fc.record({ data: someText, format: fc.constant('wav') }),
  }),
);
const message = fc.record(
  {
    role: fc.constantFrom('system', 'developer', 'user', 'assistant'),
    content: fc.oneof(text, fc.array(part, { minLength: 1, maxLength: 3 })),
    name: text,
  },
  { requiredKeys: ['role', 'content'] },
);

const input = fc.oneof(
  fc.record({ context: text }),
  fc.record({ messages: fc.array(message, { minLength: 1, maxLength: 3 }) }),
);
const settings = fc.record(
  {
    images: fc.array(media, { maxLength: 2 }),
    audio: fc.array(media, { maxLength: 2 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    max_output_tokens: fc.integer({ min: 1, max: 4096 }),
    response_format: fc.constant({ type: 'json_object' }),
    target_language: language,
  },
  { requiredKeys: [] },
);

const answerSchema = fc.constantFrom<object>(
  { vendor: 'string', lines: [{ sku: 'string', qty: 'integer' }] },
  { type: 'object', properties: { a: { type: ['string', 'null'], maxLength: 9 } }, required: ['a'] },
  {
    type: 'object',
    properties: { n: { $ref: '#/$defs/n' } },
    $defs: { n: { type: 'number', minimum: 0, multipleOf: 0.5 } },
  },
  {
    type: 'object',
    properties: { t: { anyOf: [{ enum: ['a', 1, null] }, { type: 'string', pattern: '^[a-z]{2}$' }] } },
  },
);
const decideFields = { question: someText, options: texts(4), instruction: text };
const extractFields = { instruction: someText, keys: texts(4) };
const schemaFields = { instruction: someText, schema: answerSchema };

const named = { name: taskName, target_language: language };
const task = fc.oneof(
  fc.record({ type: fc.constant('decide'), ...named, ...decideFields }, { requiredKeys: ['type', 'name', 'question'] }),
  fc.record(
    { type: fc.constant('extract'), ...named, ...extractFields },
    { requiredKeys: ['type', 'name', 'instruction'] },
  ),
  fc.record(
    { type: fc.constant('extract'), ...named, ...schemaFields },
    { requiredKeys: ['type', 'name', 'instruction'] },
  ),
);
const tasks = fc.uniqueArray(task, { minLength: 1, maxLength: 4, selector: ({ name }) => name });

const model = fc.constant('assay/starter');
const merged = <T extends object>(...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as T);

export interface ValidRequest {
  path: string;
  body: { [field: string]: unknown };
}

export const validRequest: fc.Arbitrary<ValidRequest> = fc.oneof(
  fc.record({
    path: fc.constantFrom('/v1/tasks', '/v1/decide-extract'),
    body: merged<ValidRequest['body']>(fc.record({ model, tasks }), input, settings),
  }),
  fc.record({
    path: fc.constant('/decide'),
    body: merged<ValidRequest['body']>(
      fc.record({ model }),
      fc.record(decideFields, { requiredKeys: ['question'] }),
      input,
      settings,
    ),
  }),
  fc.record({
    path: fc.constant('/extract'),
    body: merged<ValidRequest['body']>(
      fc.record({ model }),
      fc.oneof(
        fc.record(extractFields, { requiredKeys: ['instruction'] }),
        fc.record(schemaFields, { requiredKeys: ['instruction'] }),
      ),
      input,
      settings,
    ),
  }),
);
