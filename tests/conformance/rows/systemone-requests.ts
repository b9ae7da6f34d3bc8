import type { Row } from '../row.ts';

const model = 'assay/starter';
const state = 'I want my money back!';
const path = '/v1/systemone';
const noul = { type: 'noul', instructions: 'Does the customer want a refund?' };
const admitted = (batch: object) => [{ call: 'runTasks' as const, batch }, 'admit' as const];

const sent = (name: string, body: object, batch: object, more: Partial<Row> = {}): Row => ({
  name: `/v1/systemone: ${name}`,
  request: { path, json: { model, state, questions: { a: noul }, ...body } },
  expect: { calls: admitted(batch) },
  ...more,
});
/** A question, and the task that the backend receives. */
const question = (name: string, asked: object, task: object): Row =>
  sent(name, { questions: { a: asked } }, { tasks: [task] });

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);
const seen = (name: string, body: object, media: object[]): Row => sent(name, body, { media });

/** The fields that TypeSafe's and other System One clients send, and our additions, as the backend receives them. */
export const systemOneRequests: readonly Row[] = [
  {
    name: '/v1/systemone: windows of a text that fits',
    request: { path, json: { model, state, questions: { a: noul }, windows: { size: 100, combine: 'all' } } },
    expect: {
      like: { answers: { a: { x_window: { index: 0, count: 1, start: 0, end: state.length } } } },
      calls: ['listModels', ...admitted({ input: { context: state } })],
    },
  },
  sent(
    'model, state, questions',
    {},
    {
      model,
      input: { context: state },
      media: [],
      tasks: [{ type: 'decide', kind: 'predicate', name: 'q0', question: noul.instructions, options: ['yes', 'no'] }],
      temperature: 0,
      maxOutputTokens: 1024,
      probabilities: { calibrated: true },
    },
  ),
  ...(
    [
      ['{"id":9007199254740993}', '{"id": 9007199254740993}'],
      [
        '{ "price":49.90,"n":1.0,\n"tiny":1e-05, "list":[ 2.50,-0,[]] }',
        '{"price": 49.90, "n": 1.0, "tiny": 1e-05, "list": [2.50, -0, []]}',
      ],
      ['{"z":1,"10":{"b":"a:b, c","2":null},"9":true}', '{"z": 1, "10": {"b": "a:b, c", "2": null}, "9": true}'],
      ['[1.0,{"a":"\\u00e9\\n"}]', '[1.0, {"a": "é\\n"}]'],
    ] as const
  ).map(
    ([json, context]): Row => ({
      name: `/v1/systemone: state ${json}, as its author would write it`,
      request: { path, body: `{"model":"${model}","state":${json},"questions":{"a":${JSON.stringify(noul)}}}` },
      expect: { calls: admitted({ input: { context } }) },
    }),
  ),
  sent('state as an object', { state: { message: 'Hi', n: 1 } }, { input: { context: '{"message": "Hi", "n": 1}' } }),
  sent('state as a list', { state: ['Hi', { n: null }] }, { input: { context: '["Hi", {"n": null}]' } }),
  sent('fields that nobody knows', { keep_alive: '5m', stream: false, options: { a: 1 } }, { model }),
  sent('orders', { orders: 3 }, { probabilities: { orders: 3, calibrated: true } }),
  sent('calibrated', { calibrated: false }, { probabilities: { calibrated: false } }),
  sent('max_output_tokens', { max_output_tokens: 7 }, { maxOutputTokens: 7 }),
  sent('abstain_below and confidence are not for the backend', { abstain_below: 0.5, confidence: 'margin' }, { model }),
  sent(
    'questions: 400 of them',
    { questions: Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`k${i}`, noul])) },
    { tasks: Array.from({ length: 400 }, (_, i) => ({ name: `q${i}` })) },
  ),

  question(
    'noul: instructions as JSON',
    { type: 'noul', instructions: { question: 'Same person?' } },
    { question: '{"question": "Same person?"}' },
  ),
  question('noul: instructions as a list', { type: 'noul', instructions: ['Same?'] }, { question: '["Same?"]' }),
  question(
    'noul: criteria',
    { ...noul, criteria: { true: 'Money is asked for.', false: { not: 'money' } } },
    { options: ['yes', 'no'], descriptions: ['Money is asked for.', '{"not": "money"}'] },
  ),
  question('noul: one criterion', { ...noul, criteria: { false: 'No money.' } }, { descriptions: [null, 'No money.'] }),
  question('noul: criteria null', { ...noul, criteria: null }, { question: noul.instructions }),
  question('noul: criteria alone', { type: 'noul', criteria: { true: 'Money.' } }, { descriptions: ['Money.', null] }),
  question(
    'choice: labels and descriptions',
    { type: 'choice', instructions: 'Team?', criteria: { billing: 'Payments', it: null } },
    { kind: 'choice', question: 'Team?', options: ['billing', 'it'], descriptions: ['Payments', null] },
  ),
  question(
    'choice: descriptions as JSON',
    { type: 'choice', criteria: { a: { is: 'A' }, b: ['B'] } },
    { descriptions: ['{"is": "A"}', '["B"]'] },
  ),
  question('choice: instructions null', { type: 'choice', instructions: null, criteria: ['a'] }, { options: ['a'] }),
  question(
    'choice: a list of labels with descriptions',
    {
      type: 'choice',
      criteria: [{ key: 'billing', description: 'Payments' }, { key: 'it', description: null }, { key: 'x' }, 'y'],
    },
    { options: ['billing', 'it', 'x', 'y'], descriptions: ['Payments', null, null, null] },
  ),
  question(
    'choice: a list of labels',
    { type: 'choice', instructions: 'Team?', criteria: ['billing', 'it'] },
    { options: ['billing', 'it'] },
  ),
  question('choice: one label', { type: 'choice', criteria: { a: null } }, { options: ['a'] }),
  question('choice: 255 labels', { type: 'choice', criteria: numbered(255) }, { options: numbered(255) }),
  question(
    'choice: labels of the prototype',
    { type: 'choice', criteria: JSON.parse('{"__proto__":null,"constructor":"c"}') },
    { options: ['__proto__', 'constructor'], descriptions: [null, 'c'] },
  ),
  question(
    'score: levels',
    { type: 'score', instructions: 'How angry?', criteria: ['calm', 'angry'] },
    { kind: 'score', question: 'How angry?', options: ['calm', 'angry'] },
  ),
  question(
    'score: levels without description',
    { type: 'score', criteria: ['calm', null] },
    { options: ['calm', '1'] },
  ),
  question(
    'score: levels as JSON',
    { type: 'score', criteria: ['calm', { is: 'angry' }] },
    { options: ['calm', '{"is": "angry"}'] },
  ),
  question(
    'extract: keys',
    { type: 'extract', instructions: 'The order.', keys: ['id'] },
    { type: 'extract', instruction: 'The order.', shape: { kind: 'keys', keys: ['id'] } },
  ),
  question(
    'extract: schema, without instructions',
    { type: 'extract', schema: { id: 'string' } },
    { type: 'extract', instruction: 'Extract the requested fields.', shape: { kind: 'schema' } },
  ),

  seen('images in base64', { images: ['AAAA'] }, [
    { type: 'image', source: { type: 'base64', data: 'AAAA' }, param: 'images[0]' },
  ]),
  seen('images as data URLs and addresses', { images: ['data:image/png;base64,AAAA', 'https://a.example/b.png'] }, [
    { source: { type: 'url', url: 'data:image/png;base64,AAAA' } },
    { source: { type: 'url', url: 'https://a.example/b.png' } },
  ]),
  seen('images as objects', { images: [{ content_type: 'image/png', base64: 'AAAA' }] }, [
    { source: { type: 'base64', data: 'AAAA', mimeType: 'image/png' } },
  ]),
  seen(
    'images as objects with addresses',
    { images: [{ url: 'https://a.example/b.png' }, { base64: 'data:image/png;base64,AAAA' }] },
    [
      { source: { type: 'url', url: 'https://a.example/b.png' } },
      { source: { type: 'url', url: 'data:image/png;base64,AAAA' } },
    ],
  ),
  seen('assets', { assets: { photo: { type: 'image', format: 'png', data_base64: 'AAAA' } } }, [
    { source: { type: 'base64', data: 'AAAA', mimeType: 'image/png' }, param: 'assets.photo' },
  ]),
  seen('audio', { audio: ['AAAA'] }, [{ type: 'audio', param: 'audio[0]' }]),
  seen('videos are media, too', { videos: ['AAAA'] }, [{ param: 'videos[0]' }]),
  ...['/v1/systemone', '/api/alpha/systemone'].map(
    (path): Row => ({
      name: `${path}: an image as a part of the body`,
      request: {
        path,
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body: [
          '--b',
          'Content-Disposition: form-data; name="request"',
          'Content-Type: application/json',
          '',
          JSON.stringify({
            model,
            state,
            questions: { a: noul },
            assets: { photo: { type: 'image', part: 'asset-0' } },
          }),
          '--b',
          'Content-Disposition: form-data; name="asset-0"; filename="asset-0"',
          'Content-Type: image/png',
          '',
          'abc',
          '--b--',
          '',
        ].join('\r\n'),
      },
      expect: {
        calls: admitted({
          media: [{ source: { type: 'base64', data: 'YWJj', mimeType: 'image/png' }, param: 'assets.photo' }],
        }),
      },
    }),
  ),
  sent('images null or empty', { images: null, assets: null, audio: [], videos: [] }, { media: [] }),
];
