import { expect, test } from 'vitest';
import type { DecideTask } from '../backend.ts';
import type { ChatMessage } from '../contract/conversation.ts';
import { taskPrompt, taskText } from './tasks.ts';

const turn = (role: ChatMessage['role'], text: string, name?: string): ChatMessage => ({
  role,
  parts: [{ type: 'text', text }],
  ...(name === undefined ? {} : { name }),
});
const decide: DecideTask = { type: 'decide', name: 't', question: 'Who agrees?', options: ['Ann', 'Bo'] };

test("a message begins with its sender's name, if one was sent", () => {
  const messages = [turn('system', 'Be strict.'), turn('user', 'I do.', 'Ann'), turn('user', 'Not me.', '')];
  const batch = { model: 'a/b', input: { messages }, media: [], tasks: [decide], temperature: 0, maxOutputTokens: 16 };
  expect(taskPrompt({ ...batch, input: { messages: messages.slice(0, 2) } }).openMessage).toBe('Ann: I do.');
  expect(taskPrompt(batch).openMessage).toBe('Not me.');
});

test.each<[string, Partial<DecideTask>, string]>([
  ['is a line of its own', { instruction: 'Say why.' }, '\nInstruction: Say why.'],
  ['that is empty is none', { instruction: '' }, ''],
  ['of white space is none', { instruction: ' \n' }, ''],
])('an instruction %s', (_, more, line) => {
  expect(taskText({ ...decide, ...more }, undefined)).toBe(`Question: Who agrees?\nOptions: ["Ann","Bo"]${line}`);
});
