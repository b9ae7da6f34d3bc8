import { expect } from 'vitest';
import type { Row } from '../row.ts';

const model = 'assay/starter';
const path = '/v1/rerank';
const near = (value: number): unknown => expect.closeTo(value, 9);
const body = (changes: object = {}) => ({ query: 'lamp', documents: ['a lamp', 'a chair', 'lamps'], ...changes });
const script = {
  tasks: {
    probabilities: [
      [0.5, 0.5],
      [0.25, 0.75],
      [0.75, 0.25],
    ],
    usage: { promptTokens: 40, completionTokens: 0 },
  },
};
const result = (index: number, score: number, more: object = {}) => ({ index, relevance_score: near(score), ...more });
const answered = (name: string, changes: object, results: readonly object[], more: Partial<Row> = {}): Row => ({
  name: `rerank: ${name}`,
  script,
  request: { path, json: body(changes) },
  expect: { like: { object: 'list', model, results, meta: {} } },
  ...more,
});
const tei = (name: string, changes: object, json: unknown): Row => ({
  name: `rerank: TEI: ${name}`,
  script,
  request: { path: '/rerank', json: { query: 'lamp', texts: ['a lamp', 'a chair', 'lamps'], ...changes } },
  expect: { json },
});
const refused = (name: string, changes: object, error: NonNullable<Row['expect']['error']>): Row => ({
  name: `rerank: ${name}`,
  request: { path, json: body(changes) },
  expect: { status: 400, error, calls: [] },
});
const ranked = [result(2, 0.75), result(0, 0.5), result(1, 0.25)];

/** Ranking, in the shapes of Cohere, Jina, llama.cpp and TEI. */
export const rerankRows: readonly Row[] = [
  ...['/v1/rerank', '/rerank', '/v2/rerank', '/reranking', '/v1/reranking'].map(
    (path): Row => ({
      name: `rerank: ${path} ranks, the most relevant first`,
      script,
      request: { path, headers: { 'x-request-id': 'r1' }, json: body({ model }) },
      expect: {
        json: {
          id: 'r1',
          object: 'list',
          model,
          results: ranked,
          usage: { prompt_tokens: 40, completion_tokens: 0, total_tokens: 40 },
          meta: {},
        },
      },
    }),
  ),
  answered('the query is the shared input, each document a predicate', { model, instruction: 'By fit' }, ranked, {
    expect: {
      calls: [
        {
          call: 'runTasks',
          batch: {
            model,
            input: { context: 'By fit\n\nQuery: lamp' },
            media: [],
            temperature: 0,
            probabilities: { calibrated: true },
            tasks: ['a lamp', 'a chair', 'lamps'].map((text, i) => ({
              type: 'decide',
              kind: 'predicate',
              name: `q${i}`,
              question: `Is this document relevant to the query?\nDocument: ${text}`,
              options: ['yes', 'no'],
            })),
          },
        },
        'admit',
      ],
    },
  }),
  answered('top_n', { top_n: 2 }, ranked.slice(0, 2)),
  answered('top_n of 0 means all, and more than there are, too', { top_n: 0 }, ranked),
  answered('top_n beyond the documents', { top_n: 9 }, ranked),
  answered('return_documents', { return_documents: true, top_n: 1 }, [
    result(2, 0.75, { document: { text: 'lamps' } }),
  ]),
  answered('documents as objects', { documents: [{ text: 'a' }, { text: 'b' }, 'c'] }, ranked),
  answered('calibrated: false and a cache salt', { calibrated: false, cache_salt: 's' }, ranked, {
    expect: { calls: [{ call: 'runTasks', batch: { probabilities: { calibrated: false }, cacheSalt: 's' } }, 'admit'] },
  }),
  {
    name: 'rerank: ties keep the order sent',
    script: {
      tasks: {
        probabilities: [
          [0.5, 0.5],
          [0.5, 0.5],
          [0.5, 0.5],
        ],
      },
    },
    request: { path, json: body() },
    expect: { like: { results: [result(0, 0.5), result(1, 0.5), result(2, 0.5)] } },
  },
  tei('a bare list', {}, [
    { index: 2, score: near(0.75) },
    { index: 0, score: near(0.5) },
    { index: 1, score: near(0.25) },
  ]),
  tei('texts and raw scores', { return_text: true, raw_scores: true, truncate: true }, [
    { index: 2, score: near(Math.log(3)), text: 'lamps' },
    { index: 0, score: near(0), text: 'a lamp' },
    { index: 1, score: near(-Math.log(3)), text: 'a chair' },
  ]),
  refused('no documents', { documents: [] }, { code: 'invalid_value', param: 'documents' }),
  refused('257 documents', { documents: Array(257).fill('a') }, { code: 'invalid_value', param: 'documents' }),
  refused('an image', { documents: [{ image: 'x' }] }, { code: 'unknown_field', param: 'documents[0].image' }),
  refused('an unknown field', { top_k: 2 }, { code: 'unknown_field', param: 'top_k' }),
  refused(
    'a document beyond max_tokens_per_doc is not cut',
    { max_tokens_per_doc: 2, documents: ['a lamp', 'a very long chair'] },
    { code: 'input_too_long', param: 'documents[1]' },
  ),
];
