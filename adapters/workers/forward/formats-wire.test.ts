import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ChatRequest, TaskBatch } from '../../../lib/backend.ts';
import { chatRequest } from '../../../lib/chat/request.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { batchOfDecisions } from '../../../lib/questions/decisions.ts';
import { batchOfSystemOne } from '../../../lib/questions/systemone.ts';
import { responsesRequest } from '../../../lib/responses/request.ts';
import { ChatCompletionRequest } from '../../../lib/schema/chat-request.ts';
import { DecisionsRequest } from '../../../lib/schema/decisions-request.ts';
import { ResponsesRequest } from '../../../lib/schema/responses-request.ts';
import { SystemOneRequest } from '../../../lib/schema/systemone-request.ts';
import { validate } from '../../../lib/validation/validate.ts';
import { chatBody } from './chat-wire.ts';
import { questionsBody } from './questions-wire.ts';

// A box gets System One requests as Decisions, and responses as chats. Every request that a server accepts must
// therefore be valid in the other format, and mean the same.

const runs = { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) };
const parsed = (text: string) => parseJson(new TextEncoder().encode(text));
const readDecisions = (text: string) => batchOfDecisions(validate(DecisionsRequest, parsed(text)));
const readSystemOne = (text: string) => batchOfSystemOne(validate(SystemOneRequest, parsed(text)));
const readResponse = (text: string) => responsesRequest(validate(ResponsesRequest, parsed(text)));
const readChat = (text: string) => chatRequest(validate(ChatCompletionRequest, parsed(text)));

const anyText = fc.string({ unit: 'grapheme', maxLength: 12 });
const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof(fc.constantFrom(null, undefined), arbitrary);
const json = fc.oneof(
  fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
  fc.dictionary(anyText, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
);
const structured = fc.oneof(anyText, json);
const labels = fc.uniqueArray(words, { minLength: 1, maxLength: 4 });
const shape = fc.oneof(
  fc.constant({}),
  labels.map((keys) => ({ keys })),
  fc.constant({ schema: { a: 'string', b: ['integer'] } }),
);

const systemOneMedia = fc.oneof(
  words,
  fc.record({ url: words }),
  fc.record({ base64: words, format: fc.constantFrom('png', 'wav', 'x') }),
);
const systemOne = fc.record({
  model: words,
  state: structured,
  questions: fc.dictionary(
    words,
    fc.oneof(
      fc.record({
        type: fc.constant('noul'),
        instructions: structured,
        criteria: orNull(fc.record({ true: orNull(structured), false: orNull(structured) })),
      }),
      fc.record({
        type: fc.constant('choice'),
        instructions: maybe(structured),
        criteria: fc.oneof(labels, fc.dictionary(words, fc.option(structured), { minKeys: 1, maxKeys: 4 })),
      }),
      fc.record({ type: fc.constant('score'), instructions: maybe(structured), criteria: labels }),
      fc.tuple(maybe(structured), shape).map(([instructions, form]) => ({ type: 'extract', instructions, ...form })),
    ),
    { minKeys: 1, maxKeys: 4 },
  ),
  images: orNull(fc.array(systemOneMedia, { maxLength: 2 })),
  audio: orNull(fc.array(systemOneMedia, { maxLength: 2 })),
});

const textPart = fc.oneof(
  fc.record({ type: fc.constantFrom('input_text', 'output_text'), text: anyText }),
  fc.record({ type: fc.constant('refusal'), refusal: anyText }),
);
const image = fc.record({ type: fc.constant('input_image'), image_url: words });
const decisionPart = fc.oneof(
  textPart,
  image,
  fc.record({ type: fc.constant('input_audio'), input_audio: fc.record({ data: words, format: words }) }),
  fc.record({ type: fc.constant('input_audio'), audio_url: words }),
  fc.record({ type: fc.constant('input_json'), data: fc.dictionary(anyText, fc.jsonValue({ maxDepth: 1 })) }),
);
const instructions = fc.oneof(words, fc.array(decisionPart, { minLength: 1, maxLength: 3 }));
const role = fc.constantFrom('user', 'developer', 'system', 'assistant');
const decisions = fc.record({
  model: words,
  input: fc.oneof(
    anyText,
    fc.array(
      fc.oneof(
        fc.record({ role, content: fc.oneof(anyText, fc.array(decisionPart, { minLength: 1, maxLength: 3 })) }),
        fc.record({ type: fc.constant('function_call'), call_id: anyText, name: anyText, arguments: anyText }),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  ),
  questions: fc.array(
    fc.oneof(
      fc.record({
        type: fc.constant('predicate'),
        instructions,
        name: orNull(anyText),
        criteria: orNull(fc.record({ true: orNull(anyText) })),
      }),
      fc.record({
        type: fc.constant('choice'),
        instructions,
        choices: fc.uniqueArray(fc.record({ value: fc.oneof(words, fc.boolean()), description: orNull(anyText) }), {
          minLength: 1,
          maxLength: 4,
          selector: ({ value }) => JSON.stringify(value),
        }),
      }),
      fc.tuple(instructions, shape).map(([asked, form]) => ({ type: 'extract', instructions: asked, ...form })),
    ),
    { minLength: 1, maxLength: 3 },
  ),
});

it.each<[string, fc.Arbitrary<object>, (text: string) => TaskBatch]>([
  ['System One', systemOne, readSystemOne],
  ['Decisions', decisions, readDecisions],
])('a box reads a request of %s as the same questions', (_, requests, read) => {
  fc.assert(
    fc.property(requests, (request) => {
      const batch = read(JSON.stringify(request));
      expect(readDecisions(questionsBody(batch)).tasks).toEqual(batch.tasks);
    }),
    runs,
  );
});

const responseContent = fc.oneof(
  anyText,
  fc.array(fc.oneof(textPart, image, fc.record({ type: fc.constant('reasoning_text'), text: anyText })), {
    maxLength: 3,
  }),
);
const call = fc
  .record({ id: words, output: fc.oneof(anyText, fc.array(textPart, { maxLength: 2 })) })
  .map(({ id, output }) => [
    { type: 'function_call', call_id: id, name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: id, output },
  ]);
const response = fc.record({
  model: orNull(words),
  instructions: orNull(anyText),
  top_p: orNull(fc.double({ min: 0, max: 1, noNaN: true })),
  top_logprobs: orNull(fc.integer({ min: 0, max: 20 })),
  input: fc.oneof(
    anyText,
    fc
      .array(
        fc.oneof(
          fc.record({ role, content: responseContent }).map((message) => [message]),
          call,
        ),
        {
          minLength: 1,
          maxLength: 3,
        },
      )
      .map((items) => items.flat()),
  ),
});

it('a box reads a response as the same chat', () => {
  fc.assert(
    fc.property(response, (request) => {
      const chat = readResponse(JSON.stringify(request));
      expect(meaning(readChat(chatBody(chat)))).toEqual(meaning(chat));
    }),
    runs,
  );
});

/** Returns the request without the paths of media, and without the empty text that a chat gives a message of calls. */
function meaning(request: ChatRequest): object {
  const messages = request.messages.map(({ parts, ...message }) => {
    const kept = parts.filter((part) => !(message.toolCalls && part.type === 'text' && part.text === ''));
    return { ...message, parts: kept.map((part) => ({ ...part, param: undefined })) };
  });
  return { ...request, messages };
}
