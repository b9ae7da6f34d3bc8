import { describe, expect, it } from 'vitest';
import type { TaskBatch } from '../backend.ts';
import type { ChatMessage, MediaPart } from '../contract/conversation.ts';
import { chatPrefix, contextHash, taskPrefix } from './affinity.ts';

const turn = (role: ChatMessage['role'], text: string): ChatMessage => ({ role, parts: [{ type: 'text', text }] });
const system = turn('system', 'Be brief.');
const hello = turn('user', 'Hello');
const talk = [system, hello, turn('assistant', 'Hi'), turn('user', 'And now?')];

const batch = (input: TaskBatch['input'], rest: Partial<TaskBatch> = {}): TaskBatch => ({
  model: 'a/b',
  input,
  media: [],
  tasks: [],
  temperature: 0,
  maxOutputTokens: 16,
  ...rest,
});
const chat = (messages: readonly ChatMessage[]) =>
  chatPrefix({ messages, stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } });

describe('prefixes', () => {
  it('do not depend on the tasks', () => {
    const one = batch({ context: 'x' }, { tasks: [{ type: 'decide', name: 'a', question: 'q' }] });
    expect(taskPrefix(one)).toBe(taskPrefix(batch({ context: 'x' })));
  });

  it('stay while a conversation grows', () => {
    expect(chat(talk)).toBe(chat([system, hello]));
    expect(taskPrefix(batch({ messages: talk }))).toBe(taskPrefix(batch({ messages: [system, hello] })));
  });

  it.each([
    ['models', batch({ context: 'x' }), batch({ context: 'x' }, { model: 'a/c' })],
    ['contexts', batch({ context: 'x' }), batch({ context: 'y' })],
    ['first questions', batch({ messages: [system, hello] }), batch({ messages: [system, turn('user', 'Bye')] })],
    ['instructions', batch({ messages: [system, hello] }), batch({ messages: [turn('system', 'Be long.'), hello] })],
    [
      'images',
      batch({ context: 'x' }),
      batch({ context: 'x' }, { media: [{ type: 'image', source: { type: 'url', url: 'u' }, param: 'images[0]' }] }),
    ],
  ])('differ by %s', (_, one, other) => {
    expect(taskPrefix(one)).not.toBe(taskPrefix(other));
  });

  const shown = (url: string) => ({
    type: 'image' as const,
    source: { type: 'url' as const, url },
    param: 'images[0]',
  });
  it.each([
    [
      'tasks',
      taskPrefix(batch({ context: 'x' }, { media: [shown('u')] })),
      taskPrefix(batch({ context: 'y' }, { media: [shown('u')] })),
    ],
    [
      'chats',
      chat([{ role: 'user', parts: [shown('u'), { type: 'text', text: 'a' }] }]),
      chat([system, { role: 'user', parts: [shown('u')] }]),
    ],
  ])('of %s about the same image are equal, whatever is asked', (_, one, other) => {
    expect(one).toBe(other);
    expect(one).not.toBe(taskPrefix(batch({ context: 'x' }, { media: [shown('v')] })));
  });

  it('of an image are equal, whether it is sent in base64 or as a data: URL', () => {
    const source = { type: 'base64' as const, data: 'iVBORw0KGgo=', mimeType: 'image/png' };
    const prefixOf = (image: MediaPart) => taskPrefix(batch({ context: 'x' }, { media: [image] }));
    const base64 = prefixOf({ type: 'image', source, param: 'images[0]' });
    expect(prefixOf(shown('data:image/png;base64,iVBORw0KGgo='))).toBe(base64);
    expect(prefixOf(shown('data:image/png;base64,iVBORw0KGgp='))).not.toBe(base64);
  });

  it('have a hash of 16 digits, whichever model is asked', () => {
    const hash = contextHash(batch({ context: 'x' }));
    expect(hash).toMatch(/^[0-9a-f]{16}$/u);
    expect(contextHash(batch({ context: 'x' }, { model: 'a/c' as never }))).toBe(hash);
    expect(contextHash(batch({ context: 'y' }))).not.toBe(hash);
  });

  const long = Array.from({ length: 20_000 }, (_, i) => `${i} `).join('');
  it.each([
    ['beginning', `!${long.slice(1)}`],
    ['middle', `${long.slice(0, 50_000)}${'!'.repeat(4_000)}${long.slice(54_000)}`],
    ['end', `${long.slice(0, -1)}!`],
    ['length', `${long} `],
  ])('of long contexts differ by their %s, at a length that does not grow with them', (_, other) => {
    const prefix = taskPrefix(batch({ context: long }));
    expect(taskPrefix(batch({ context: other }))).not.toBe(prefix);
    expect(prefix.length).toBeLessThan(5_000);
  });
});
