import { expect, it } from 'vitest';
import type { Task } from '../../lib/backend.ts';
import type { AnswerShape } from '../../lib/contract/answer-shape.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelCapabilities } from '../../lib/schema/model-list.ts';
import type { ModelInfo, Work } from '../protocol/messages.ts';
import { capabilitiesOf, chooseModel } from './choose-model.ts';

const base = { device: 'CPU', maxPromptLen: 512, contextLength: 512, loadMs: 1 } as const;
const SPANS: ModelCapabilities = {
  decide: 'options',
  extract: 'spans',
  chat: false,
  abstains: true,
  max_tokens: 512,
  max_options: 4,
};
const modelOf = (name: string, more: Partial<ModelInfo> = {}) => {
  const model = `test/${name}` as ModelId;
  return { model, info: { ...base, model, ...more } };
};
const chat = modelOf('chat', { reads: 'image' });
const other = modelOf('other');
const decider = modelOf('decider', {
  capabilities: { ...SPANS, extract: false, abstains: false, max_options: 255 },
});
const encoder = modelOf('encoder', { capabilities: SPANS });
const starting = { model: 'test/starting' as ModelId, info: null };

const tasks = (...list: Partial<Task>[]): Work => ({
  kind: 'tasks',
  batch: {
    input: { context: '' },
    media: [],
    tasks: list.map((task) => ({ name: 'a', ...task }) as Task),
    temperature: 0,
    maxOutputTokens: 1,
  },
});
const decide = (options?: readonly string[], more = {}): Partial<Task> => ({
  type: 'decide',
  question: '?',
  ...(options ? { options } : {}),
  ...more,
});
const extract = (verbatim?: true, shape: AnswerShape = { kind: 'keys', keys: ['name'] }): Partial<Task> => ({
  type: 'extract',
  instruction: '?',
  shape,
  ...(verbatim ? { verbatim } : {}),
});
const number: AnswerShape = {
  kind: 'schema',
  schema: { type: 'object', properties: { price: { type: 'number' } } },
};
const image = { type: 'image' as const, source: { type: 'url' as const, url: 'https://x.test/a.png' }, param: '' };
const seen = tasks(decide(['a', 'b']));
if (seen.kind === 'tasks') seen.batch = { ...seen.batch, media: [image] };
const chats = { kind: 'chat', request: { messages: [] } } as unknown as Work;

it.each([
  ['the only model, whatever it can', chats, [decider], decider],
  ['none where none is loaded', chats, [], undefined],
  ['the chat model for a chat', chats, [decider, chat, encoder], chat],
  ['the chat model that was loaded last', chats, [other, chat], other],
  ['the decision model for a choice', tasks(decide(['a', 'b'])), [chat, decider], decider],
  ['the chat model for a question without options', tasks(decide()), [decider, chat], chat],
  ['the chat model for a choice with a reason', tasks(decide(['a'], { instruction: 'Why?' })), [decider, chat], chat],
  ['the chat model for more options than the encoder takes', tasks(decide([...'abcde'])), [encoder, chat], chat],
  ['the chat model for an extraction', tasks(extract()), [decider, encoder, chat], chat],
  ['the encoder for quotes', tasks(extract(true)), [decider, chat, encoder], encoder],
  ['the chat model for quotes that are no spans', tasks(extract(true, number)), [decider, encoder, chat], chat],
  ['the model that can answer all tasks', tasks(decide(['a']), extract()), [decider, chat], chat],
  ['the model that reads the image', seen, [decider, other, chat], chat],
  ['the model that was loaded last where none can answer', chats, [encoder, decider], encoder],
  ['one whose abilities are known', chats, [starting, chat], chat],
])('chooses %s', (_, work, loaded, chosen) => {
  expect(chooseModel<(typeof loaded)[number]>(work, loaded)).toBe(chosen);
});

it('gives models without capabilities of their own those of their kind', () => {
  expect(capabilitiesOf(chat.info)).toMatchObject({ decide: 'any', extract: 'schema', chat: true, max_tokens: 512 });
  expect(capabilitiesOf(encoder.info)).toBe(SPANS);
});
