import type { Row } from '../row.ts';

const model = 'assay/starter';
const context = 'I want my money back!';
const decide = { type: 'decide', name: 'angry', question: 'Is the customer angry?' };
const extract = { type: 'extract', name: 'order', instruction: 'Extract the order.' };
const admitted = (batch: object) => [{ call: 'runTasks' as const, batch }, 'admit' as const];

/** A field of a task, and what the backend receives. */
const taskField = (name: string, base: object, fields: object, task: object): Row => ({
  name,
  request: { path: '/v1/tasks', json: { model, context, tasks: [{ ...base, ...fields }] } },
  expect: { calls: admitted({ tasks: [task] }) },
});
const ofDecide = (name: string, fields: object, task: object) =>
  taskField(`DecideTask.${name}`, decide, fields, { type: 'decide', ...task });
const ofExtract = (name: string, fields: object, task: object) =>
  taskField(`ExtractTask.${name}`, extract, fields, { type: 'extract', ...task });

/** A shared field, the same on every path that accepts it. */
const shared = (name: string, fields: object, batch: object): readonly Row[] =>
  [
    { path: '/v1/tasks', json: { model, context, tasks: [decide] } },
    { path: '/v1/decide-extract', json: { model, context, tasks: [decide] } },
    { path: '/decide', json: { model, context, question: decide.question } },
    { path: '/extract', json: { model, context, instruction: extract.instruction } },
  ].map(({ path, json }) => ({
    name: `${path}: ${name}`,
    // A field set to undefined is omitted from the JSON.
    request: { path, json: { ...json, ...fields } },
    expect: { calls: admitted({ model, ...batch }) },
  }));

const longestName = `a${'-'.repeat(63)}`;
const oddKeys = ['b', '10', '__proto__', '1'];
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

const turn = (role: string, text: string) => ({ role, parts: [{ type: 'text', text }] });
const says = (content: unknown) => ({ context: undefined, messages: [{ role: 'user', content }] });
const hears = (part: object) => ({ input: { messages: [{ role: 'user', parts: [part] }] } });
const at = 'messages[0].content[0]';
const [url, data] = ['https://img.example/a.png', 'AAAA'];

/** docs/interface.md, D-3 to D-14: every field, as the backend receives it. */
export const decisionRequests: readonly Row[] = [
  ofDecide('name, question', {}, { name: 'angry', question: decide.question }),
  ofDecide('options', { options: ['yes', 'no'] }, { options: ['yes', 'no'] }),
  ofDecide('choices, alias of options', { choices: ['yes', 'no'] }, { options: ['yes', 'no'] }),
  ofDecide('options and choices, equal', { options: ['yes'], choices: ['yes'] }, { options: ['yes'] }),
  ofDecide('instruction', { instruction: 'Be strict.' }, { instruction: 'Be strict.' }),
  ofDecide('target_language', { target_language: 'de' }, { language: 'de' }),
  ofDecide('id, alias of name', { name: undefined, id: 'mood' }, { name: 'mood' }),
  ofExtract('name, instruction', {}, { name: 'order', instruction: extract.instruction, shape: { kind: 'open' } }),
  ofExtract('keys', { keys: ['b', 'a'] }, { shape: { kind: 'keys', keys: ['b', 'a'] } }),
  ofExtract('fields, alias of keys', { fields: ['b', 'a'] }, { shape: { kind: 'keys', keys: ['b', 'a'] } }),
  ofExtract('keys and fields, equal', { keys: ['a'], fields: ['a'] }, { shape: { kind: 'keys', keys: ['a'] } }),
  ofExtract(
    'schema, JSON Schema',
    { schema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] } },
    { shape: { kind: 'schema', schema: { type: 'object', properties: { total: { type: 'number' } } } } },
  ),
  ofExtract(
    'schema, shorthand',
    { schema: { vendor: 'string', lines: [{ qty: 'integer' }] } },
    { shape: { kind: 'schema', schema: { type: 'object', required: ['vendor', 'lines'] } } },
  ),
  ofExtract(
    'keys and schema: keys select',
    { schema: { a: 'string', b: 'string' }, keys: ['b'] },
    { shape: { kind: 'schema', keys: ['b'] } },
  ),
  ofExtract('target_language', { target_language: 'ja' }, { language: 'ja' }),
  ofExtract('id, alias of name', { name: undefined, id: 'bill' }, { name: 'bill' }),

  // docs/interface.md, D-6 and D-7: values that are just allowed
  ofDecide('name of 1 character', { name: '_' }, { name: '_' }),
  ofDecide('name of 64 characters', { name: longestName }, { name: longestName }),
  ofDecide('options, 256 of them', { options: numbered(256) }, { options: numbered(256) }),
  ofDecide('an option of 1,024 code points', { options: ['😀'.repeat(1024)] }, { options: ['😀'.repeat(1024)] }),
  ofDecide('an instruction that is empty', { instruction: '' }, { instruction: '' }),
  ofExtract('keys, 128 of them', { keys: numbered(128) }, { shape: { kind: 'keys', keys: numbered(128) } }),
  ofExtract('keys such as 10 and __proto__', { keys: oddKeys }, { shape: { kind: 'keys', keys: oddKeys } }),

  ...shared('model, context', {}, { input: { context } }),
  ...shared('context, empty', { context: '' }, { input: { context: '' } }),
  ...shared('messages', says('Hi'), { input: { messages: [turn('user', 'Hi')] } }),
  ...shared(
    'images: url',
    { images: [{ type: 'url', url }] },
    {
      media: [{ type: 'image', source: { type: 'url', url }, param: 'images[0]' }],
    },
  ),
  ...shared(
    'audio: base64',
    { audio: [{ type: 'base64', data, mime_type: 'audio/wav' }] },
    {
      media: [{ type: 'audio', source: { type: 'base64', data, mimeType: 'audio/wav' }, param: 'audio[0]' }],
    },
  ),
  ...shared('temperature, default 0', {}, { temperature: 0 }),
  ...shared('temperature 0', { temperature: 0 }, { temperature: 0 }),
  ...shared('max_output_tokens 1', { max_output_tokens: 1 }, { maxOutputTokens: 1 }),
  ...shared('temperature 2', { temperature: 2 }, { temperature: 2 }),
  ...shared('max_output_tokens, default 16', {}, { maxOutputTokens: 16 }),
  ...shared('max_output_tokens 4096', { max_output_tokens: 4096 }, { maxOutputTokens: 4096 }),
  ...shared('response_format json_object', { response_format: { type: 'json_object' } }, {}),
  ...shared('target_language', { target_language: 'cs' }, { language: 'cs' }),
  ...shared('output_language, alias of target_language', { output_language: 'cs' }, { language: 'cs' }),

  ...shared(
    'Message: roles, developer is system',
    {
      context: undefined,
      messages: ['system', 'developer', 'user', 'assistant'].map((role) => ({ role, content: role, name: 'Ada' })),
    },
    {
      input: {
        messages: [
          { ...turn('system', 'system'), name: 'Ada' },
          { ...turn('system', 'developer'), name: 'Ada' },
          { ...turn('user', 'user'), name: 'Ada' },
          { ...turn('assistant', 'assistant'), name: 'Ada' },
        ],
      },
    },
  ),
  ...shared('part text', says([{ type: 'text', text: 'Hi' }]), hears({ type: 'text', text: 'Hi' })),
  ...shared(
    'part image_url',
    says([{ type: 'image_url', image_url: { url, detail: 'low' } }]),
    hears({ type: 'image', source: { type: 'url', url }, detail: 'low', param: at }),
  ),
  ...shared(
    'part image',
    says([{ type: 'image', image: { type: 'base64', data, mime_type: 'image/png' } }]),
    hears({ type: 'image', source: { type: 'base64', data, mimeType: 'image/png' }, param: at }),
  ),
  ...shared(
    'part audio',
    says([{ type: 'audio', audio: { type: 'url', url } }]),
    hears({ type: 'audio', source: { type: 'url', url }, param: at }),
  ),
  ...shared(
    'part input_audio',
    says([{ type: 'input_audio', input_audio: { data, format: 'mp3' } }]),
    hears({ type: 'audio', source: { type: 'base64', data, mimeType: 'audio/mpeg' }, param: at }),
  ),

  ...[
    'en',
    'es',
    'fr',
    'de',
    'it',
    'pt',
    'nl',
    'ru',
    'ja',
    'ko',
    'zh',
    'ar',
    'hi',
    'tr',
    'pl',
    'sv',
    'da',
    'no',
    'fi',
    'cs',
  ].map((language) => ofDecide(`target_language ${language}`, { target_language: language }, { language })),

  {
    name: '/decide: question, options, instruction',
    request: {
      path: '/decide',
      json: { model, context, question: 'Angry?', options: ['yes'], instruction: 'Be strict.' },
    },
    expect: {
      calls: admitted({ tasks: [{ type: 'decide', question: 'Angry?', options: ['yes'], instruction: 'Be strict.' }] }),
    },
  },
  {
    name: '/decide: choices, alias of options',
    request: { path: '/decide', json: { model, context, question: 'Angry?', choices: ['yes'] } },
    expect: { calls: admitted({ tasks: [{ type: 'decide', options: ['yes'] }] }) },
  },
  {
    name: '/extract: instruction, keys',
    request: { path: '/extract', json: { model, context, instruction: 'The order.', keys: ['id'] } },
    expect: {
      calls: admitted({
        tasks: [{ type: 'extract', instruction: 'The order.', shape: { kind: 'keys', keys: ['id'] } }],
      }),
    },
  },
  {
    name: 'D-11: verbatim quotes texts from the context',
    request: { path: '/extract', json: { model, context, instruction: 'The order.', keys: ['id'], verbatim: true } },
    expect: {
      calls: admitted({
        tasks: [{ type: 'extract', instruction: 'The order.', shape: { kind: 'keys', keys: ['id'] }, verbatim: true }],
      }),
    },
  },
  {
    name: '/extract: fields, alias of keys',
    request: { path: '/extract', json: { model, context, instruction: 'The order.', fields: ['id'] } },
    expect: { calls: admitted({ tasks: [{ type: 'extract', shape: { kind: 'keys', keys: ['id'] } }] }) },
  },
  {
    name: '/extract: schema',
    request: { path: '/extract', json: { model, context, instruction: 'The order.', schema: { id: 'string' } } },
    expect: { calls: admitted({ tasks: [{ type: 'extract', shape: { kind: 'schema' } }] }) },
  },
  {
    name: 'the request id goes to the backend',
    request: { path: '/v1/tasks', json: { model, context, tasks: [decide] }, headers: { 'x-request-id': 'r-1' } },
    expect: { calls: [{ call: 'runTasks', requestId: 'r-1' }, 'admit'] },
  },
];
