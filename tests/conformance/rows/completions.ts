import { expect } from 'vitest';
import type { Row } from '../row.ts';
import { asked, finish, head, metrics, model, says, start, thinks, usage } from './chat-parts.ts';

const path = '/v1/completions';
const whole = (choices: object[], rest: object = {}) => ({
  ...head,
  id: expect.stringMatching(/^cmpl-/),
  object: 'text_completion',
  choices: choices.map((choice) => ({ index: 0, logprobs: null, ...choice })),
  ...rest,
});
const text = (text: string, finish_reason: string | null = null) => ({ text, finish_reason });
const shown = asked({ messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] });

/** docs/model-api.md, M-30. */
export const completionRows: readonly Row[] = [
  {
    name: 'the prompt is the message of a user, and the answer a text without its reasoning',
    script: { chat: [start, thinks('Hm'), says('Hel'), says('lo'), finish] },
    request: { path, json: { model, prompt: 'Hi' } },
    expect: { json: whole([text('Hello', 'stop')], { usage, metrics }), ...shown },
  },
  ...[
    { prompt: ['Hi'] },
    { prompt: 'Hi', echo: false, best_of: 1, logprobs: 0, suffix: null, n: 1, user: 'u', response_format: null },
  ].map((json): Row => ({ name: `the same for ${JSON.stringify(json)}`, request: { path, json }, expect: shown })),
  {
    name: 'all parameters of a chat',
    request: { path, json: { prompt: 'Hi', max_tokens: 5, temperature: 0.5, top_p: 0.9, seed: 3, stop: 'x' } },
    expect: asked({ maxTokens: 5, temperature: 0.5, topP: 0.9, seed: 3, stop: ['x'] }),
  },
  {
    name: 'a stream has the text in parts, then the end with usage',
    script: { chat: [start, thinks('Hm'), says('Hel'), says('lo'), finish] },
    request: { path, json: { prompt: 'Hi', stream: true } },
    expect: {
      headers: { 'assay-context-hash': /^[0-9a-f]{16}$/ },
      events: [whole([text('Hel')]), whole([text('lo')]), whole([text('', 'stop')], { usage, metrics }), '[DONE]'],
    },
  },
  {
    name: 'stream_options.include_usage: one more event without choices',
    script: { chat: [start, says('x'), finish] },
    request: { path, json: { prompt: 'Hi', stream: true, stream_options: { include_usage: true } } },
    expect: {
      events: [
        whole([text('x')], { usage: null }),
        whole([text('', 'stop')], { usage: null }),
        whole([], { usage, metrics }),
        '[DONE]',
      ],
    },
  },
  ...(
    [
      [{}, 'missing_field', 'prompt'],
      [{ prompt: [1, 2] }, 'invalid_type', 'prompt[0]'],
      [{ prompt: ['a', 'b'] }, 'invalid_value', 'prompt'],
      [{ prompt: 'Hi', n: 2 }, 'unsupported_parameter', 'n'],
      [{ prompt: 'Hi', echo: true }, 'unsupported_parameter', 'echo'],
      [{ prompt: 'Hi', suffix: 'x' }, 'unsupported_parameter', 'suffix'],
      [{ prompt: 'Hi', best_of: 2 }, 'unsupported_parameter', 'best_of'],
      [{ prompt: 'Hi', logprobs: 3 }, 'unsupported_parameter', 'logprobs'],
      [{ prompt: 'Hi', logit_bias: { 5: 1 } }, 'unsupported_parameter', 'logit_bias'],
      [{ prompt: 'Hi', guided_regex: 'a' }, 'unsupported_parameter', 'guided_regex'],
      [{ prompt: 'Hi', response_format: { type: 'json_object' } }, 'unsupported_parameter', 'response_format'],
    ] as const
  ).map(
    ([json, code, param]): Row => ({
      name: `${JSON.stringify(json)} is ${code}`,
      request: { path, json },
      expect: { status: 400, error: { code, param }, calls: [] },
    }),
  ),
];
