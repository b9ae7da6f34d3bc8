import { NO_METRICS } from '../../scripted-backend/backend.ts';
import type { Row } from '../row.ts';
import { asked, finish, head, messages, metrics, model, path, says, start, thinks, usage } from './chat-parts.ts';

const whole = (message: object, rest: object = {}) => ({
  ...head,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', logprobs: null, ...rest }],
  usage,
  metrics,
});

const token = { token: 'Hel', logprob: -0.5, bytes: [72, 101, 108] };
const other = { token: 'Ho', logprob: -1.5, bytes: [72, 111] };

/** docs/model-api.md, M-15 and M-16. */
export const chatResponses: readonly Row[] = [
  {
    name: 'a blocking answer: content, finish reason, usage, metrics',
    script: { chat: [start, says('Hel'), says('lo'), finish] },
    request: { path, json: { model, messages } },
    expect: { json: whole({ content: 'Hello' }) },
  },
  {
    name: 'the id holds the request id',
    request: { path, json: { messages }, headers: { 'x-request-id': 'mine-1' } },
    expect: { like: { id: 'chatcmpl-mine-1' }, headers: { 'x-request-id': 'mine-1' } },
  },
  {
    name: 'reasoning stands apart from the answer',
    script: { chat: [start, thinks('Let me '), thinks('see.'), says('Yes'), finish] },
    request: { path, json: { messages, stream: false } },
    expect: { json: whole({ content: 'Yes', reasoning_content: 'Let me see.' }) },
  },
  {
    name: 'an empty answer',
    script: { chat: [start, finish] },
    request: { path, json: { messages } },
    expect: { json: whole({ content: '' }) },
  },
  ...(['stop', 'length', 'content_filter'] as const).map(
    (reason): Row => ({
      name: `finish_reason ${reason}`,
      script: {
        chat: [
          start,
          { event: { type: 'finish', reason, usage: { promptTokens: 1, completionTokens: 2 }, metrics: NO_METRICS } },
        ],
      },
      request: { path, json: { messages } },
      expect: {
        like: {
          choices: [{ finish_reason: reason }],
          usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
          metrics: NO_METRICS,
        },
      },
    }),
  ),
  {
    name: 'an answer that repeats itself is cut, and says so',
    script: {
      chat: [
        start,
        {
          event: {
            type: 'finish',
            reason: 'repetition',
            usage: { promptTokens: 1, completionTokens: 2 },
            metrics: NO_METRICS,
          },
        },
      ],
    },
    request: { path, json: { messages } },
    expect: { like: { choices: [{ finish_reason: 'length', stop_reason: 'repetition' }] } },
  },
  {
    name: 'logprobs in the shape of OpenAI',
    script: {
      chat: [
        start,
        { event: { type: 'content', text: 'Hel', logprobs: [{ ...token, top: [token, other] }] } },
        { event: { type: 'content', text: 'lo', logprobs: [{ ...other, top: [] }] } },
        finish,
      ],
    },
    request: { path, json: { messages, logprobs: true, top_logprobs: 2 } },
    expect: {
      json: whole(
        { content: 'Hello' },
        {
          logprobs: {
            content: [
              { ...token, top_logprobs: [token, other] },
              { ...other, top_logprobs: [] },
            ],
            refusal: null,
          },
        },
      ),
      ...asked({ topLogprobs: 2 }),
    },
  },
];
