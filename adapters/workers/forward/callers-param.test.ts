import { expect, test } from 'vitest';
import type { ChatMessage } from '../../../lib/contract/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { withCallersParam } from './callers-param.ts';

const CHAT = /^messages\[(\d+)\]\.content\[(\d+)\]/u;
const MESSAGES: ChatMessage[] = [
  {
    role: 'user',
    parts: [
      { type: 'text', text: 'Hi' },
      { type: 'image', source: { type: 'url', url: 'data:,' }, param: 'input[0].content[1].image_url' },
    ],
  },
];

test.each([
  ['a part', 'messages[0].content[1]', 'input[0].content[1].image_url'],
  ['a field of a part', 'messages[0].content[1].image_url', 'input[0].content[1].image_url'],
  ['a text', 'messages[0].content[0]', 'messages[0].content[0]'],
  ['no part', 'messages[3].content[1]', 'messages[3].content[1]'],
  ['another field', 'model', 'model'],
])('the param of %s', (_, param, expected) => {
  const error = new AssayError('invalid_value', `${param} cannot be read.`, { param });
  expect(withCallersParam(error, CHAT, MESSAGES)).toMatchObject({ param: expected });
});

test('other errors stay as they are', () => {
  const error = new Error('x');
  expect(withCallersParam(error, CHAT, MESSAGES)).toBe(error);
});
