import { describe, expect, it, test } from 'vitest';
import type { DecideTask } from '../backend.ts';
import type { JsonSchema } from '../contract/answer-shape.ts';
import type { ChatMessage } from '../contract/conversation.ts';
import { expandShorthand } from '../tasks/check-answer-schema.ts';
import { compactSchema, taskPrompt, taskText } from './tasks.ts';

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

describe('a shorthand, expanded, is shown as it was sent', () => {
  it.each<JsonSchema>([
    { a: 'string' },
    { a: 'integer', b: 'number', c: 'boolean' },
    { vendor: 'string', lines: [{ sku: 'string', qty: 'integer' }] },
    { a: { b: { c: ['string'] } } },
    { list: [['number']], type: 'string', items: 'integer', properties: { required: 'string' } },
    JSON.parse('{"__proto__":"string","toString":"integer"}'),
  ])('%j', (shorthand) => {
    expect(JSON.stringify(compactSchema(expandShorthand(shorthand)))).toBe(JSON.stringify(shorthand));
  });
});

describe('any other schema is shown whole', () => {
  const string = { type: ['string', 'null'] };
  const object = { type: 'object', properties: { a: string }, required: ['a'], additionalProperties: false };
  it.each<JsonSchema>([
    { ...object, required: [] },
    { ...object, additionalProperties: true },
    { ...object, title: 'a title says more' },
    { ...object, properties: { a: { type: 'string' } } },
    { ...object, properties: { a: { ...string, maxLength: 3 } } },
    { ...object, properties: { a: { type: ['string', 'null'], items: {} } } },
    { type: 'object' },
    { type: 'object', properties: {}, required: [], additionalProperties: false },
  ])('%j', (schema) => {
    expect(compactSchema(schema)).toEqual(schema);
  });
});

it('a definition that is used once becomes shorthand too', () => {
  const a = {
    type: 'object',
    properties: { a: { type: ['string', 'null'] } },
    required: ['a'],
    additionalProperties: false,
  };
  expect(compactSchema({ $ref: '#/$defs/a', $defs: { a } })).toEqual({ a: 'string' });
});
