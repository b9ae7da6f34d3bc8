import { expect, it } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { Tool } from '../../lib/backend.ts';
import { readFixture } from '../../tests/fixture.ts';
import { createChatTemplate } from './template/chat-template.ts';
import type { TemplateMessage } from './template/template-message.ts';
import { withTextTags, withToolTemplate } from './text-model.ts';

const compile = (name: string) => createChatTemplate(readFixture(`text/${name}.jinja`));

const tools: Tool[] = [{ name: 'f', description: 'Looks.', parameters: { type: 'object', properties: {} } }];
const user: TemplateMessage = { role: 'user', content: 'Hi' };
const calling: TemplateMessage[] = [
  user,
  { role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }] },
  { role: 'tool', content: 'Sun', answers: { id: 'a', name: 'f' } },
];
const CHATS: [string, TemplateMessage[], Tool[] | undefined, boolean][] = [
  ['a chat without tools', [user], undefined, false],
  ['tools', [user], tools, true],
  ['calls in messages, without tools', calling, undefined, true],
];

it.each(CHATS)('%s', (_, messages, sent, second) => {
  const template = withToolTemplate(compile('chatml'), () => compile('tools/signatures'));
  const prompt = atOnce(template.render(messages, { tools: sent })).map(({ text }) => text);
  expect(prompt.join('').includes('Functions: <tools>')).toBe(second);
});

it('the form of calls is that of the second template, which is compiled once', () => {
  let compiled = 0;
  const template = withToolTemplate(compile('chatml'), () => {
    compiled++;
    return compile('tools/signatures');
  });
  atOnce(template.render([user]));
  expect(compiled).toBe(0);
  expect(template.tools()?.head).toBe('<tool_call>\n{"name": "');
  atOnce(template.render([user], { tools }));
  expect(compiled).toBe(1);
});

it('a second template that cannot be used fails chats with tools only', () => {
  const template = withToolTemplate(compile('chatml'), () => createChatTemplate('{% if %}'));
  expect(atOnce(template.render([user]))).not.toEqual([]);
  expect(() => atOnce(template.render([user], { tools }))).toThrow(expect.objectContaining({ code: 'engine_failed' }));
});

it('tags that are control tokens are a form without support', () => {
  const template = compile('tools/xml');
  expect(withTextTags(template, new Map([['<tool_call>', 1]])).tools()?.tags?.open).toBe('<parameter=');
  expect(withTextTags(template, new Map([['</parameter>', 1]])).tools()).toBeNull();
});
