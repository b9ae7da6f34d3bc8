import { expect } from 'vitest';
import type { ChatStep } from '../../scripted-backend/script.ts';

// The parts that the rows about chat share: a request, the steps of a backend's answer, and what is expected of it.

export const path = '/v1/chat/completions';
export const model = 'assay/starter';
export const messages = [{ role: 'user', content: 'Hi' }];

export const start: ChatStep = { event: { type: 'start', model } };
export const metrics = {
  queue_ms: 1,
  prompt_ms: 20,
  time_to_first_token_ms: 25,
  generation_ms: 40,
  total_ms: 66,
  prompt_tokens: 12,
  cached_tokens: 8,
  completion_tokens: 4,
  prompt_tokens_per_second: 600,
  tokens_per_second: 100,
  device: 'CPU',
} as const;
export const finish: ChatStep = {
  event: { type: 'finish', reason: 'stop', usage: { promptTokens: 12, completionTokens: 4 }, metrics },
};
export const usage = {
  prompt_tokens: 12,
  completion_tokens: 4,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 8 },
};
export const says = (text: string): ChatStep => ({ event: { type: 'content', text } });
export const thinks = (text: string): ChatStep => ({ event: { type: 'reasoning', text } });
export const head = { id: expect.stringMatching(/^chatcmpl-/), created: expect.any(Number), model };

export const asked = (request: object) => ({ calls: [{ call: 'chat' as const, request }, 'admit' as const] });
