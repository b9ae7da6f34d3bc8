const model = 'assay/starter';
const context =
  'Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. Please refund me today!';
const usage = { prompt_tokens: 118, completion_tokens: 9, total_tokens: 127 };
const id = 'b7c0a9f2-3f0e-4a51-9d0c-2f6f5f1f9f10';

const choice = (answer: object) => ({
  message: { role: 'assistant', content: JSON.stringify(answer) },
  finish_reason: 'stop',
});

export interface Example {
  summary: string;
  request: object;
  /** The exact response; absent if it depends on the machine. */
  response?: object;
}

const angry = { value: 'yes' };
const order = { order_id: 'A-1042', amount: '49.90' };

const batch: Example = {
  summary: 'A decision and an extraction',
  request: {
    model,
    context,
    tasks: [
      { type: 'decide', name: 'wants_refund', question: 'Does the customer want a refund?', options: ['yes', 'no'] },
      { type: 'extract', name: 'order', instruction: 'Extract the order.', keys: ['order_id', 'amount'] },
    ],
    max_output_tokens: 64,
  },
  response: {
    id,
    model,
    choices: [choice({ wants_refund: angry, order })],
    results: { wants_refund: angry, order },
    tasks: { wants_refund: angry, order },
    usage,
  },
};

const asked: Example = {
  summary: 'Probabilities, and an extraction with evidence',
  request: {
    model,
    input: context,
    questions: [
      { type: 'predicate', name: 'refund', instructions: 'Does the customer want a refund?' },
      {
        type: 'choice',
        name: 'team',
        instructions: 'Which team should answer?',
        choices: [{ value: 'billing', description: 'Payments and refunds' }, { value: 'shipping' }],
      },
      { type: 'score', name: 'anger', instructions: 'How angry?', levels: [{ label: 'calm' }, { label: 'angry' }] },
      { type: 'extract', name: 'order', instructions: 'Extract the order.', keys: ['order_id'] },
    ],
  },
  response: {
    model,
    answers: [
      { type: 'predicate', name: 'refund', probability: 0.9375 },
      {
        type: 'choice',
        name: 'team',
        choice: 'billing',
        confidence: 0.18872187554086717,
        probabilities: [
          { value: 'billing', probability: 0.75 },
          { value: 'shipping', probability: 0.25 },
        ],
      },
      {
        type: 'score',
        name: 'anger',
        score: 0.75,
        confidence: 0.18872187554086717,
        probabilities: [
          { label: 'calm', value: 0, probability: 0.25 },
          { label: 'angry', value: 1, probability: 0.75 },
        ],
      },
      {
        type: 'extract',
        name: 'order',
        data: { order_id: 'A-1042' },
        fields: [
          {
            path: '/order_id',
            value: 'A-1042',
            probability: 0.9,
            evidence: { source: '/input', start: 6, end: 12 },
          },
        ],
        complete: true,
      },
    ],
    usage: {
      input_tokens: 118,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 127,
    },
  },
};

const named: Example = {
  summary: 'The same questions by name, about JSON',
  request: {
    model,
    state: { message: context, customer: 'returning' },
    questions: {
      refund: { type: 'noul', instructions: 'Does the customer want a refund?' },
      team: { type: 'choice', criteria: { billing: 'Payments and refunds', shipping: null } },
      anger: { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'angry'] },
      order: { type: 'extract', instructions: 'Extract the order.', keys: ['order_id'] },
    },
  },
  response: {
    model,
    answers: {
      refund: { type: 'noul', noul: 0.9375 },
      team: {
        type: 'choice',
        choice: 'billing',
        probabilities: { billing: 0.75, shipping: 0.25 },
        confidence: 0.5,
      },
      anger: {
        type: 'score',
        score: 0.75,
        legend: { 0: 'calm', 1: 'angry' },
        probabilities: { 0: 0.25, 1: 0.75 },
        confidence: 0.5,
      },
      order: {
        type: 'extract',
        data: { order_id: 'A-1042' },
        fields: [
          {
            path: '/order_id',
            value: 'A-1042',
            probability: 0.9,
            evidence: { source: '/state/message', start: 6, end: 12 },
          },
        ],
        complete: true,
      },
    },
    usage: { input_tokens: 118, output_tokens: 9 },
  },
};

const load: Example = { summary: 'With room for long prompts', request: { model, max_prompt_len: 2048 } };
const download: Example = {
  summary: 'From the hub',
  request: { model: 'onnx-community/Qwen3-0.6B-ONNX', allow_download: true },
};
const remove: Example = { summary: 'Compiled files only', request: { model, compiled_only: true } };

/** Examples by operation id. Tests send the request of each, and expect exactly its response if it has one. */
export const EXAMPLES: Record<string, Example> = {
  runTasks: batch,
  decideExtract: batch,
  decide: {
    summary: 'A choice between options',
    request: { model, context, question: 'Does the customer want a refund?', options: ['yes', 'no'] },
    response: { id, model, choices: [choice(angry)], result: angry, decision: angry, value: 'yes', usage },
  },
  extract: {
    summary: 'Fields of a schema, in the shorthand form',
    request: {
      model,
      context,
      instruction: 'Extract the order.',
      schema: { order_id: 'string', amount: 'number' },
      max_output_tokens: 64,
    },
    response: {
      id,
      model,
      choices: [choice({ order_id: 'A-1042', amount: 49.9 })],
      result: { order_id: 'A-1042', amount: 49.9 },
      data: { order_id: 'A-1042', amount: 49.9 },
      usage,
    },
  },
  createDecision: asked,
  askSystemOne: named,
  loadModel: load,
  loadModelShort: load,
  downloadModel: download,
  downloadModelShort: download,
  deleteModel: remove,
  deleteModelShort: remove,
  createChatCompletion: {
    summary: 'A short answer',
    request: {
      model,
      messages: [
        { role: 'system', content: 'Answer in one sentence.' },
        { role: 'user', content: 'What does a refund mean?' },
      ],
      max_tokens: 64,
      temperature: 0,
    },
  },
};
