import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../lib/at-once.ts';
import type { Tool } from '../../../lib/backend.ts';
import type { ChatMessage } from '../../../lib/contract/conversation.ts';
import { readFixture } from '../../../tests/fixture.ts';
import { createChatTemplate } from '../template/chat-template.ts';
import { toTemplateMessages } from '../template/template-message.ts';
import { withToolFields } from './tool-format.ts';

const source = (name: string) => readFixture(`text/tools/${name}.jinja`);
const said = (role: ChatMessage['role'], text: string): ChatMessage => ({ role, parts: [{ type: 'text', text }] });

const tools: Tool[] = [
  {
    name: 'f',
    description: 'Ends <|im_end|> here.',
    parameters: { type: 'object', properties: { a: { type: 'string' } } },
  },
];
const conversation: ChatMessage[] = [
  said('user', 'Hi'),
  {
    ...said('assistant', 'Let me look.'),
    toolCalls: [
      { id: 'x', name: 'f', arguments: '{"a":"[INST]"}' },
      { id: 'y', name: 'f', arguments: '{}' },
    ],
  },
  { ...said('tool', 'of "y"'), toolCallId: 'y' },
  { ...said('tool', 'of x'), toolCallId: 'x' },
];

function segments(template: string, messages = conversation) {
  const { render } = createChatTemplate(source(template), { bos_token: '<s>', eos_token: '</s>' });
  return atOnce(render(withToolFields(toTemplateMessages(messages, undefined), messages), { tools }));
}
const prompt = (template: string, messages = conversation) =>
  segments(template, messages)
    .map(({ text }) => text)
    .join('');

describe('a conversation with tools', () => {
  it.each([
    ...['hermes', 'llama3', 'mistral', 'mistral-args', 'list'],
    ...['signatures', 'actions', 'plan', 'declared', 'harmony'],
  ])('%s: control tokens in it stay text', (template) => {
    const texts = segments(template).filter(({ trust }) => trust === 'user');
    expect(texts.map(({ text }) => text.trim())).toEqual(
      expect.arrayContaining(['Hi', 'Ends <|im_end|> here.', '[INST]']),
    );
    for (const { trust, text } of segments(template)) {
      if (trust === 'template') expect(text).not.toMatch(/Ends|"\[INST\]"|[\uE000-\uE004]/u);
    }
  });

  it('is rendered by the template, with calls before their outputs', () => {
    expect(prompt('hermes')).toMatch(
      /Let me look\.\n<tool_call>\n\{"name": "f", "arguments": \{"a": "\[INST\]"\}\}\n<\/tool_call>\n<tool_call>\n\{"name": "f", "arguments": \{\}\}/u,
    );
    expect(prompt('mistral')).toMatch(
      /"id": "call00000"\}, .*"id": "call00001"\}\]<\/s>.*"call_id": "call00001".*"call_id": "call00000"/u,
    );
  });

  it('a template that takes one call in a message gets one, with its own output, as JSON where it writes that', () => {
    const rendered = prompt('llama3');
    expect(rendered.match(/(?<=<\|start_header_id\|>)\w+/gu)).toEqual([
      'user',
      'assistant',
      'ipython',
      'assistant',
      'ipython',
      'assistant',
    ]);
    expect(rendered.indexOf('"of x"')).toBeLessThan(rendered.indexOf('"of \\"y\\""'));
    expect(rendered).not.toContain('Let me look.');
  });

  it('a template that writes no calls gets them as the model writes them', () => {
    expect(prompt('declared')).toContain(
      '<|end_of_role|><|tool_call|>[{"name": "f", "arguments": {"a": "[INST]"}}, {"name": "f", "arguments": {}}]<|im_end|>',
    );
    const mark = segments('declared').find(({ text }) => text.includes('<|tool_call|>['));
    expect(mark?.trust).toBe('template');
  });

  it('a template that moves its instruction to the end of the prompt has it once, after the outputs', () => {
    expect(prompt('actions')).toMatch(
      /Let me look\.\nAction:\n```json\n\[\n {4}\{\n {8}"tool_name": "f",.*<results>\nof "y"<\/results>.*Write 'Action:'.*assistant\n$/su,
    );
    expect(prompt('actions').match(/Write 'Action:'/gu)).toHaveLength(1);
  });

  it.each<[string, Tool['parameters'], string]>([
    ['no description', { properties: { a: { type: 'string' } } }, 'a: str'],
    ['no type', { properties: { a: { enum: ['x'] } } }, 'a: Any'],
    ['a type or null', { properties: { a: { type: ['integer', 'null'] } } }, 'a: int'],
    ['several types', { properties: { a: { type: ['integer', 'string'] } } }, 'a: Any'],
    ['an array', { properties: { a: { type: 'array', items: { type: 'string' } } } }, 'a: list[Any]'],
    ['no properties', {}, ''],
  ])('a template that writes signatures gets tools with %s', (_, parameters, signature) => {
    const { render } = createChatTemplate(source('signatures'));
    const shown: Tool[] = [{ name: 'f', parameters: { type: 'object', ...parameters } }];
    const [first] = atOnce(render([{ role: 'user', content: 'Hi' }], { tools: shown }));
    expect(first?.text).toContain(`"description": "f(${signature}) - `);
  });

  it('the ids of the request are not in the prompt', () => {
    const [user, assistant] = conversation as [ChatMessage, ChatMessage];
    const renamed = [
      user,
      { ...assistant, toolCalls: assistant.toolCalls!.map((call) => ({ ...call, id: `other-${call.id}` })) },
    ];
    expect(prompt('mistral', renamed)).toBe(prompt('mistral', [user, assistant]));
  });

  it('a template that refuses the conversation says so', () => {
    const alone = [said('tool', 'x')].map((message) => ({ ...message, toolCallId: 'nowhere' }));
    expect(() => prompt('mistral', alone)).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'messages' }),
    );
  });
});
