import { at } from '../at.ts';
import type { TaskBatch } from '../backend.ts';
import { type RerankRequest, type TeiRerankRequest, textOfDocument } from '../schema/rerank.ts';
import { named, predicateTask } from './decisions.ts';
import type { QuestionAnswers } from './question-answers.ts';
import { batchSettings } from './settings.ts';

/*
 * Converts requests to rank documents to a `TaskBatch`, and a `BatchAnswer` to its response. The query is the shared
 * input, and each document a question whether it is relevant.
 */

/** Converts a validated request to a batch. */
export function batchOfRerank(request: RerankRequest | TeiRerankRequest): TaskBatch {
  const { model, query, instruction, calibrated, cache_salt } = request;
  const context = instruction ? `${instruction}\n\nQuery: ${query}` : `Query: ${query}`;
  return {
    ...(model === undefined || model === null ? {} : { model }),
    input: { context },
    media: [],
    tasks: named(
      textsOf(request).map((text) => predicateTask(`Is this document relevant to the query?\nDocument: ${text}`)),
    ),
    ...batchSettings({ ...(calibrated === undefined ? {} : { calibrated }), cache_salt }),
  };
}

function textsOf(request: RerankRequest | TeiRerankRequest): readonly string[] {
  return 'texts' in request ? request.texts : request.documents.map(textOfDocument);
}

/**
 * Returns the JSON text of a RerankResponse.
 *
 * @param answer the backend's answer to `batchOfRerank(request)`
 */
export function rerankBody(request: RerankRequest, answer: QuestionAnswers, id: string): string {
  const { documents, top_n: most, return_documents: returned } = request;
  const { promptTokens, completionTokens } = answer.usage;
  const results = ranked(answer).map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(returned ? { document: { text: textOfDocument(at(documents, index)) } } : {}),
  }));
  return JSON.stringify({
    id,
    object: 'list',
    model: answer.model,
    results: results.slice(0, most || results.length),
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
    meta: {},
  });
}

/**
 * Returns the JSON text of the answer in TEI's form. A raw score is the logit of the probability.
 *
 * @param answer the backend's answer to `batchOfRerank(request)`
 */
export function teiRerankBody(request: TeiRerankRequest, answer: QuestionAnswers): string {
  const { texts, raw_scores: raw, return_text: returned } = request;
  return JSON.stringify(
    ranked(answer).map(({ index, score, logit }) => ({
      index,
      score: raw ? logit : score,
      ...(returned ? { text: at(texts, index) } : {}),
    })),
  );
}

/** Returns the documents by falling probability of relevance; equally relevant ones in the order sent. */
function ranked({ answers }: QuestionAnswers): { index: number; score: number; logit: number }[] {
  const scored = answers.map(({ optionLogprobs: [yes = 0, no = 0] = [] }, index) => ({
    index,
    score: Math.exp(yes),
    logit: yes - no,
  }));
  return scored.sort((a, b) => b.logit - a.logit || a.index - b.index);
}
