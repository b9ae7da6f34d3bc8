import * as v from 'valibot';
import { object, strictObject } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { settings } from './question-fields.ts';
import { count, described, nonEmpty, nullish, probability, whole } from './values.ts';

/*
 * Requests of `POST /v1/rerank` and its aliases, as Cohere, Jina, vLLM and llama.cpp accept them (PyPI `cohere` 7.3.1,
 * `vllm` 0.33.0), and of Text Embeddings Inference (TEI), whose documents are `texts` and whose answer is a list.
 */

/** Maximum number of documents of one request. */
export const MOST_DOCUMENTS = 256;

const document = v.union([v.string(), strictObject({ text: v.string() })]);
const query = described(nonEmpty, 'What the documents are ranked by.');
const model = nullish(nonEmpty, 'Id of the loaded model. Default: the loaded one.');
const ignored = nullish(v.unknown(), 'Accepted and ignored.');
const truncate = nullish(v.unknown(), 'Accepted and ignored: a document is read whole, or refused if it is too long.');
const shared = {
  instruction: nullish(v.string(), 'What makes a document relevant, for the model. An extension.'),
  calibrated: settings.calibrated,
  cache_salt: settings.cache_salt,
};

/** Characters that count as one token of a document, for `max_tokens_per_doc`. */
const CHARACTERS_PER_TOKEN = 4;

export const RerankRequest = v.pipe(
  strictObject({
    model,
    query,
    documents: described(
      v.pipe(v.array(document), v.minLength(1), v.maxLength(MOST_DOCUMENTS)),
      'The documents: texts, or objects with text.',
    ),
    top_n: nullish(count, 'Number of documents to return, the most relevant ones. Default, and for 0: all.'),
    return_documents: nullish(v.boolean(), 'Whether each result has its document. Default: false.'),
    max_tokens_per_doc: nullish(
      whole(1),
      `Refuse a longer document, counting ${CHARACTERS_PER_TOKEN} characters as a token. Documents are never cut.`,
    ),
    ...shared,
    priority: ignored,
    provider: ignored,
    rank_fields: ignored,
    user: ignored,
    truncate,
  }),
  rule(({ documents, max_tokens_per_doc: most }) => {
    if (most === undefined || most === null) return null;
    const long = documents.findIndex((one) => textOfDocument(one).length > most * CHARACTERS_PER_TOKEN);
    if (long === -1) return null;
    const message = `has more than max_tokens_per_doc, about ${most * CHARACTERS_PER_TOKEN} characters; documents are not cut: send a part of it, or a higher limit`;
    return { code: 'input_too_long', at: ['documents', long], message };
  }),
);
export type RerankRequest = v.InferOutput<typeof RerankRequest>;

/** Returns the text of a document. */
export function textOfDocument(one: v.InferOutput<typeof document>): string {
  return typeof one === 'string' ? one : one.text;
}

export const RankResult = v.object({
  index: described(count, 'Index of the document in the request.'),
  relevance_score: described(probability, 'Probability that the document is relevant.'),
  document: v.exactOptional(v.object({ text: v.string() })),
});
export const RerankResponse = v.object({
  id: described(v.string(), 'Id of the request.'),
  object: v.literal('list'),
  model: described(v.string(), 'Id of the model that answered.'),
  results: described(v.array(RankResult), 'The documents, the most relevant first.'),
  usage: v.object({ prompt_tokens: count, completion_tokens: count, total_tokens: count }),
  meta: described(v.object({}), 'Empty; clients of Cohere read it.'),
});

/** A request in TEI's form, which is answered by a list of index, score and, on request, text. */
export const TeiRerankRequest = object({
  model,
  query,
  texts: v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(MOST_DOCUMENTS)),
  raw_scores: v.nullish(v.boolean()),
  return_text: v.nullish(v.boolean()),
  truncate,
  ...shared,
});
export type TeiRerankRequest = v.InferOutput<typeof TeiRerankRequest>;

export const TeiRank = v.object({
  index: described(count, 'Index of the text in the request.'),
  score: described(v.number(), 'Probability that the text is relevant, or its logit with raw_scores.'),
  text: v.exactOptional(v.string()),
});
/** The answer in TEI's form. */
export const TeiRanks = described(v.array(TeiRank), 'The texts, the most relevant first.');
