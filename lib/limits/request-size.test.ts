import { describe, expect, test } from 'vitest';
import type { Task, TaskBatch } from '../backend.ts';
import {
  answerTokens,
  checkFits,
  checkMessages,
  checkRequestSize,
  checkRequestTokens,
  sizeOf,
  sizeOfRequest,
} from './request-size.ts';

const batch = (more: Partial<TaskBatch> = {}): TaskBatch => ({
  model: '',
  input: { context: 'x'.repeat(300) },
  media: [],
  tasks: [],
  temperature: 0,
  maxOutputTokens: 16,
  ...more,
});

const choices = (tasks: number, options: number, length: number): Task[] =>
  Array.from({ length: tasks }, (_, i) => ({
    type: 'decide',
    name: `t${i}`,
    question: 'x',
    options: Array.from({ length: options }, (_, k) => `${k}`.padStart(length, 'o')),
  }));

test('counts characters in all places, and media separately', () => {
  const source = { type: 'base64', data: 'x'.repeat(1_000), mimeType: 'a' };
  expect(sizeOf({ a: 'xyz', b: [{ c: 'é' }, 'pq', 5, null, true], d: {} }).characters).toBe(10);
  expect(sizeOf([source, source]).media).toEqual({ count: 2, characters: 2_002 });
});

test('estimates a text that is far too long at a quarter of the queue', () => {
  const request = batch({ input: { context: 'x'.repeat(1e6) }, maxOutputTokens: 1 });
  expect(sizeOfRequest(request).tokens).toBe(32_768 + 1);
});

test.each([
  [16, 16],
  [4_096, 256],
])('an answer of at most %i tokens counts as %i', (maxOutputTokens, tokens) => {
  const request = batch({ maxOutputTokens });
  expect(answerTokens(request)).toBe(tokens);
  expect(sizeOfRequest(request).tokens).toBe(Math.ceil(sizeOf(request).characters / 3) + tokens);
});

test('counts a question once for each order of its options, of which there are never more than options', () => {
  const tokens = (orders: number) =>
    sizeOfRequest(batch({ tasks: choices(1, 3, 30), probabilities: { orders, calibrated: false } })).tokens;
  const each = (tokens(3) - tokens(1)) / 2;
  expect(each).toBeGreaterThan(30);
  expect(tokens(2) - tokens(1)).toBeCloseTo(each, -1);
  expect(tokens(8)).toBe(tokens(3));
});

describe('the bound of a request', () => {
  test.each<[string, Partial<TaskBatch>, boolean]>([
    ['one small task', { tasks: choices(1, 2, 3) }, true],
    ['the most tasks with options of usual length', { tasks: choices(256, 20, 10) }, true],
    ['the most tasks with the most long options', { tasks: choices(256, 256, 20) }, false],
    ['many orders', { tasks: choices(400, 255, 8), probabilities: { orders: 8, calibrated: true } }, false],
    ['the same without orders', { tasks: choices(400, 255, 6), probabilities: { orders: 1, calibrated: true } }, true],
    ['a long context, which has a bound of its own', { input: { context: 'x'.repeat(2e6) } }, true],
  ])('%s', (_, more, fits) => {
    const check = () => checkRequestSize(batch(more));
    if (fits) expect(check).not.toThrow();
    else expect(check).toThrow(expect.objectContaining({ code: 'input_too_long' }));
  });

  test('the refusal names both numbers', () => {
    expect(() => checkRequestTokens(131_072)).not.toThrow();
    expect(() => checkRequestTokens(131_073, 'about ')).toThrow(/about 131073 tokens .* 131072/u);
  });
});

test.each<[string, object, boolean]>([
  ['a text whose tokens are all long', { context: ' '.repeat(255_000) }, true],
  ['a text that no tokenizer makes short enough', { context: 'x'.repeat(260_000) }, false],
  ['a picture', { source: { type: 'base64', data: 'A'.repeat(1e6) } }, true],
  ['a picture in a URL', { source: { type: 'url', url: `data:image/png;base64,${'A'.repeat(1e6)}` } }, true],
])('a prompt of 1,000 tokens and %s', (_, input, fits) => {
  const check = () => checkFits(batch({ input: input as TaskBatch['input'] }), 1_000);
  if (fits) expect(check).not.toThrow();
  else expect(check).toThrow(/maximum context length is 1000 tokens .* has 26\d+ characters/u);
});

test.each([
  ['a', 64, null],
  ['a', 65, /has at least 65\./],
  [' ', 256, null],
  [' ', 257, /has more than 256\./],
] as const)('messages with the text "%s", %d of them, and 64 tokens', (text, count, refusal) => {
  const check = () => checkMessages(Array(count).fill({ parts: [{ type: 'text', text }] }), 64);
  if (refusal) expect(check).toThrow(refusal);
  else expect(check).not.toThrow();
});
