import type { Row } from '../row.ts';

const model = 'assay/starter';
const input = 'I want my money back!';
const path = '/v1/decisions';
const audioPath = 'input[0].content[0]';
const predicate = { type: 'predicate', instructions: 'Does the customer want a refund?' };
const admitted = (batch: object) => [{ call: 'runTasks' as const, batch }, 'admit' as const];

const sent = (name: string, body: object, batch: object, more: Partial<Row> = {}): Row => ({
  name: `/v1/decisions: ${name}`,
  request: { path, json: { model, input, questions: [predicate], ...body } },
  expect: { calls: admitted(batch) },
  ...more,
});
/** A question, and the task that the backend receives. */
const question = (name: string, asked: object, task: object): Row =>
  sent(name, { questions: [asked] }, { tasks: [task] });

const text = (words: string) => ({ type: 'text', text: words });
const turn = (role: string, ...parts: object[]) => ({ role, parts });
/** Items of an input, and the messages that the backend receives. */
const heard = (name: string, items: object[], ...messages: object[]): Row =>
  sent(`input: ${name}`, { input: items }, { input: { messages } });

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);
const choices = (...values: unknown[]) => values.map((value) => ({ value }));
const call = { type: 'function_call', call_id: 'c1', name: 'lookup', arguments: '{"id":7}' };
const custom = { type: 'custom_tool_call', call_id: 'c2', name: 'grep', input: 'refund' };

/**
 * The fields that the npm package `openai` 7.55.0 sends to `decisions.create`, and our additions, as the backend
 * receives them.
 */
export const decisionsRequests: readonly Row[] = [
  sent(
    'model, input, questions',
    {},
    {
      model,
      input: { context: input },
      media: [],
      tasks: [
        { type: 'decide', kind: 'predicate', name: 'q0', question: predicate.instructions, options: ['yes', 'no'] },
      ],
      temperature: 0,
      maxOutputTokens: 1024,
      probabilities: { calibrated: true },
    },
  ),
  ...['safety_identifier', 'prompt_cache_key'].flatMap((name) => [
    sent(`${name}: accepted, not used`, { [name]: 'x' }, { input: { context: input } }),
    sent(`${name}: null`, { [name]: null }, { input: { context: input } }),
  ]),
  sent(
    'prompt_cache_options: accepted, not used',
    { prompt_cache_options: { mode: 'explicit', ttl: '30m' } },
    { model },
  ),
  sent('orders', { orders: 3 }, { probabilities: { orders: 3, calibrated: true } }),
  sent('calibrated', { calibrated: false }, { probabilities: { calibrated: false } }),
  sent('max_output_tokens', { max_output_tokens: 7 }, { maxOutputTokens: 7 }),
  sent('abstain_below and confidence are not for the backend', { abstain_below: 0.5, confidence: 'margin' }, { model }),
  sent('an input that is empty', { input: '' }, { input: { context: '' } }),
  sent(
    'questions: 400 of them',
    { questions: Array(400).fill(predicate) },
    {
      tasks: Array.from({ length: 400 }, (_, i) => ({ name: `q${i}` })),
    },
  ),

  question('predicate: instructions as text', predicate, { kind: 'predicate', question: predicate.instructions }),
  question(
    'predicate: instructions as parts',
    {
      type: 'predicate',
      instructions: [
        { type: 'input_text', text: 'Is' },
        { type: 'input_text', text: 'it?' },
      ],
    },
    { question: 'Is\nit?' },
  ),
  question(
    'predicate: instructions with JSON',
    { type: 'predicate', instructions: [{ type: 'input_json', data: { a: [1] } }] },
    { question: '{"a": [1]}' },
  ),
  question('predicate: name', { ...predicate, name: 'refund' }, { name: 'q0' }),
  question('predicate: name null', { ...predicate, name: null }, { name: 'q0' }),
  question(
    'predicate: criteria',
    { ...predicate, criteria: { true: 'Money is asked for.' } },
    { options: ['yes', 'no'], descriptions: ['Money is asked for.', null] },
  ),
  question(
    'choice: values and descriptions',
    {
      type: 'choice',
      instructions: 'Team?',
      choices: [{ value: 'billing', description: 'Payments' }, { value: 'it' }],
    },
    { kind: 'choice', question: 'Team?', options: ['billing', 'it'], descriptions: ['Payments', null] },
  ),
  question(
    'choice: description null',
    { type: 'choice', instructions: 'Team?', choices: [{ value: 'a', description: null }, { value: 'b' }] },
    { options: ['a', 'b'] },
  ),
  question(
    'choice: true and false',
    { type: 'choice', instructions: 'Open?', choices: choices(true, false) },
    { options: ['true', 'false'] },
  ),
  question(
    'choice: a boolean and a string of the same text are two',
    { type: 'choice', instructions: 'Open?', choices: choices('true', true, false) },
    { options: ['true', 'true (boolean)', 'false'] },
  ),
  question(
    'choice: 255 of them',
    { type: 'choice', instructions: 'Which?', choices: choices(...numbered(255)) },
    { options: numbered(255) },
  ),
  question(
    'choice: values that begin alike',
    { type: 'choice', instructions: 'Which?', choices: choices('red', 'red wine', 'red wine glass') },
    { options: ['red', 'red wine', 'red wine glass'] },
  ),
  question(
    'score: labels and descriptions',
    {
      type: 'score',
      instructions: 'How angry?',
      levels: [{ label: 'calm' }, { label: 'angry', description: 'Shouts.' }],
    },
    { kind: 'score', question: 'How angry?', options: ['calm', 'angry'], descriptions: [null, 'Shouts.'] },
  ),
  question(
    'extract: keys',
    { type: 'extract', instructions: 'The order.', keys: ['id'] },
    { type: 'extract', instruction: 'The order.', shape: { kind: 'keys', keys: ['id'] } },
  ),
  question(
    'extract: schema',
    { type: 'extract', instructions: 'The order.', schema: { id: 'string' } },
    { type: 'extract', shape: { kind: 'schema', schema: { type: 'object', required: ['id'] } } },
  ),
  question('extract: neither', { type: 'extract', instructions: 'The order.' }, { shape: { kind: 'open' } }),

  heard('a message of text', [{ role: 'user', content: 'Hello' }], turn('user', text('Hello'))),
  heard('type message', [{ type: 'message', role: 'user', content: 'Hello' }], turn('user', text('Hello'))),
  heard(
    'developer and system',
    [
      { role: 'developer', content: 'A' },
      { role: 'system', content: [{ type: 'input_text', text: 'B' }] },
    ],
    turn('system', text('A')),
    turn('system', text('B')),
  ),
  heard(
    'assistant, with output and refusal',
    [
      {
        role: 'assistant',
        phase: 'final_answer',
        content: [
          { type: 'output_text', text: 'A' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ],
    turn('assistant', text('A'), text('No.')),
  ),
  heard('assistant as text', [{ role: 'assistant', content: 'A' }], turn('assistant', text('A'))),
  heard(
    'JSON, and a breakpoint',
    [
      {
        role: 'user',
        content: [
          { type: 'input_json', data: { id: 7 } },
          { type: 'input_text', text: 'Hello', prompt_cache_breakpoint: { mode: 'explicit' } },
        ],
      },
    ],
    turn('user', text('{"id": 7}'), text('Hello')),
  ),
  heard(
    'a list of JSON',
    [{ role: 'user', content: [{ type: 'input_json', data: [{ id: 7 }] }] }],
    turn('user', text('[{"id": 7}]')),
  ),
  heard(
    'function_call and function_call_output',
    [call, { type: 'function_call_output', call_id: 'c1', output: 'open', status: 'completed' }],
    turn('assistant', text('Call of lookup: {"id":7}')),
    turn('user', text('Output of the call:'), text('open')),
  ),
  heard(
    'custom_tool_call and custom_tool_call_output of parts',
    [custom, { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'none' }] }],
    turn('assistant', text('Call of grep: refund')),
    turn('user', text('Output of the call:'), text('none')),
  ),
  {
    ...heard('an image, which the backend refuses where it cannot see', [
      { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' }] },
    ]),
    script: { tasks: { fail: { code: 'unsupported_modality', param: 'input[0].content[0].image_url' } } },
    expect: {
      status: 400,
      error: { code: 'unsupported_modality', param: 'input[0].content[0].image_url' },
      calls: [
        {
          call: 'runTasks',
          batch: {
            input: {
              messages: [
                turn('user', {
                  type: 'image',
                  source: { type: 'url', url: 'data:image/png;base64,AAAA' },
                  detail: 'low',
                  param: 'input[0].content[0].image_url',
                }),
              ],
            },
          },
        },
      ],
    },
  },
  ...(
    [
      [
        'input_audio, as OpenAI writes it',
        { input_audio: { data: 'UklGRg==', format: 'mp3' } },
        { source: { type: 'base64', data: 'UklGRg==', mimeType: 'audio/mpeg' }, param: `${audioPath}.input_audio` },
      ],
      [
        'audio_url',
        { audio_url: 'https://a.example/b.wav', input_audio: null },
        { source: { type: 'url', url: 'https://a.example/b.wav' }, param: `${audioPath}.audio_url` },
      ],
    ] as const
  ).map(([name, part, read]) =>
    sent(
      name,
      { input: [{ role: 'user', content: [{ type: 'input_audio', ...part }] }] },
      { input: { messages: [turn('user', { type: 'audio', ...read })] } },
    ),
  ),
  ...(['original', 'auto', 'high', null] as const).map((detail) =>
    sent(
      `input_image.detail ${detail}`,
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.example/b.png', detail }] }] },
      {
        input: { messages: [turn('user', { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } })] },
      },
    ),
  ),
  {
    ...sent(
      'an image in a question',
      { questions: [{ ...predicate, instructions: [{ type: 'input_image', image_url: 'https://a.example/b.png' }] }] },
      { media: [{ type: 'image', param: 'questions[0].instructions[0].image_url' }] },
    ),
  },
];
