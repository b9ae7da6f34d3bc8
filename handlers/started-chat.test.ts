import { expect, test } from 'vitest';
import type { ChatEvent, InferenceBackend } from '../lib/backend.ts';
import { hashSecret, listedKeys } from '../lib/keys.ts';
import { parseModelId } from '../lib/model-id.ts';
import { createApp } from './app.ts';

const KEY = { name: 'ann', sha256: await hashSecret('s'), models: ['a/*'], scopes: [] };
const start: ChatEvent = { type: 'start', model: parseModelId('a/b') };
const word: ChatEvent = { type: 'content', text: 'x' };

/** Sends a chat to a backend with these events. `ends` collects what the backend sees of the end of its work. */
async function chat(events: readonly ChatEvent[], ends: string[], cleanup: () => void = () => {}) {
  const backend: InferenceBackend = {
    listModels: async () => [],
    runTasks: () => Promise.reject(new Error('no tasks')),
    async *chat(_, { signal }) {
      signal.addEventListener('abort', () => ends.push('aborted'));
      try {
        yield* events;
      } finally {
        ends.push('ended');
        cleanup();
      }
    },
  };
  const app = createApp({ backend, keys: listedKeys([KEY]), keyForModels: true });
  return app.request('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: 'Bearer s', 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'x' }], stream: true }),
  });
}

test('a chat that answers with a model that the key may not use is ended at once', async () => {
  const ends: string[] = [];
  expect((await chat([{ ...start, model: parseModelId('c/d') }, word], ends)).status).toBe(403);
  expect(ends).toEqual(['aborted', 'ended']);
});

test('a backend whose cleanup fails after the caller has left does not end the process', async () => {
  const ends: string[] = [];
  const failing = () => {
    throw new Error('cleanup failed');
  };
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const response = await chat([start, word, word, word], ends, failing);
  const reader = response.body!.getReader();
  await reader.read();
  await reader.cancel();
  await new Promise((resolve) => setTimeout(resolve, 10));
  process.off('unhandledRejection', note);
  expect(ends).toEqual(['aborted', 'ended']);
  expect(unhandled).toEqual([]);
});
