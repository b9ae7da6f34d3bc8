import * as v from 'valibot';
import { strictObject } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { cacheSalt } from './sampling-fields.ts';
import { answerSchema, keys, verbatim } from './task-fields.ts';
import { count, described, exactOptional, nullish, probability, whole } from './values.ts';
import { windows } from './windows.ts';

/*
 * Fields that `/v1/decisions` and `/v1/systemone` share: Assay's additions to both, and the question type `extract`.
 */

/** Maximum number of options of one question, as in OpenAI's Decisions API and System One. */
export const MOST_OPTIONS = 255;
/**
 * Maximum number of orders in which one question shows its options; each order costs as much prefill as a separate
 * question.
 */
export const MOST_ORDERS = 8;
/** Maximum length of one option in code points, the same as for an option of a decide task. */
export const OPTION_LENGTH = 1024;
/**
 * Returns the rule that a question has at most `MOST_OPTIONS` options. Its message has the words by which benchmarks
 * know that a server does not support a question (PyPI `decision-index`: "options per choice").
 *
 * @param count returns the number of options
 */
export function fewOptions<TInput>(count: (options: TInput) => number) {
  return rule<TInput>((options) =>
    count(options) > MOST_OPTIONS
      ? {
          code: 'invalid_value',
          message: `has ${count(options)} options; there may be ${MOST_OPTIONS} options per choice`,
        }
      : null,
  );
}
/** Maximum length of a question's name in characters. */
const NAME_LENGTH = 1024;

export const questionName = described(
  v.pipe(v.string(), v.maxLength(NAME_LENGTH)),
  'Name of the question, returned with its answer.',
);

/** Fields of an `extract` question that define the shape of its answer, as in an extract task. */
export const extraction = {
  type: v.literal('extract'),
  keys: v.exactOptional(keys),
  schema: v.exactOptional(answerSchema),
  verbatim: v.exactOptional(verbatim),
};

/** The field `unsure` of questions with options. */
export const unsure = nullish(
  v.union([v.boolean(), v.pipe(v.string(), v.minLength(1), v.maxLength(4096))]),
  'Show the model one more option: that the input does not tell; a text describes it. Its probability is x_p_unsure, and if it is the likeliest, the answer is an abstention. Default: false.',
);

/** Fields of a question of many labels that set which labels are selected. */
export const selection = {
  threshold: exactOptional(probability, 'Least probability of a selected label. Default: 0.5.'),
  min: exactOptional(count, 'Least number of selected labels: the most probable ones below the threshold are added.'),
  max: exactOptional(count, 'Greatest number of selected labels: only the most probable ones are kept.'),
};

/** Returns the rule that `min` is at most `max` and at most the number of labels. */
export function selectable<TQuestion extends { min?: number; max?: number }>(count: (question: TQuestion) => number) {
  return rule<TQuestion>((question) => {
    const { min = 0, max = count(question) } = question;
    if (min > count(question)) {
      return {
        code: 'invalid_value',
        at: ['min'],
        message: `must be at most the number of labels, ${count(question)}`,
      };
    }
    return min > max ? { code: 'invalid_value', at: ['min'], message: 'must be at most max' } : null;
  });
}

/** The field `evidence` of questions with options. */
export const evidence = exactOptional(
  v.union([
    v.boolean(),
    strictObject({
      method: v.exactOptional(v.picklist(['quote', 'ablation'])),
      top: v.exactOptional(whole(1, 8)),
    }),
  ]),
  'Return what decides the answer as x_evidence. quote (also true): the words that the model quotes from the input. ablation: the sentences without which the answer is less probable, the top ones (default 3); the input must be one text of at most 32 sentences.',
);
/** Says how the evidence for an answer is found. */
export type EvidenceWish = true | { method?: 'quote' | 'ablation'; top?: number };

/** The field `max_error`. */
export const maxError = exactOptional(
  v.pipe(v.number(), v.gtValue(0), v.ltValue(1)),
  'Say of each answer whether it may be automated: x_automated is true if at most this share of such answers is wrong, by thresholds that assay calibrate --target-error has certified, and null if none is certified. Refused beside extractions, multi and calibrated: false.',
);

/** Units in which places of a text are counted. */
export const SPAN_UNITS = ['code_point', 'utf16'] as const;

/** Names of the formulas for the confidence of an answer (`lib/questions/distribution.ts`). */
export const CONFIDENCES = ['entropy', 'margin'] as const;
export type Confidence = (typeof CONFIDENCES)[number];

/**
 * Formulas of the confidence in an answer, for k options with probabilities p. `entropy` is that of Ollama's
 * documentation, `margin` and `distance` those of TypeSafe; a model's author may use another.
 *
 * - `entropy`: 1 - H / ln k, with H the entropy of the probabilities.
 * - `margin`: `lead`, and of a score `distance`.
 * - `lead`: the distance of the highest probability from an even guess, (max p - 1/k) / (1 - 1/k).
 * - `highest`: the highest probability.
 * - `distance`: 1 - (mean distance of the levels from the likeliest one) / (mean distance from the middle).
 * - `spread`: 1 - (mean distance of the levels from the likeliest one) / (k - 1).
 * - `deviation`: how far the standard deviation of the level is from its largest value, down to this least one.
 */
export const ConfidenceFormula = v.union([
  v.picklist(['entropy', 'margin', 'lead', 'highest', 'distance', 'spread']),
  v.strictObject({ deviation: probability }),
]);
export type ConfidenceFormula = v.InferOutput<typeof ConfidenceFormula>;

/**
 * Fields that Assay adds to requests of both formats. `orders`, `abstain_below` and `confidence` override settings of
 * the server.
 */
export const settings = {
  orders: exactOptional(
    whole(1, MOST_ORDERS),
    'Number of orders in which the options of each question are shown to the model. Their log-probabilities are averaged.',
  ),
  abstain_below: exactOptional(
    probability,
    'Abstain from choices whose most likely option has a lower probability than this.',
  ),
  confidence: exactOptional(
    v.picklist(CONFIDENCES),
    'Formula of confidence, for k options with probabilities p. entropy: 1 - H(p) / ln k. margin: (max p - 1/k) / (1 - 1/k); of a score with the most likely level m, 1 - Σ p_i |i - m| / U, where U is the mean distance of k levels from their middle.',
  ),
  span_unit: exactOptional(
    v.picklist(SPAN_UNITS),
    'Unit of the places of evidence. Default: utf16, as JavaScript counts; code_point as Python does.',
  ),
  max_error: maxError,
  calibrated: exactOptional(
    v.boolean(),
    "Whether to apply the model's calibration to the probabilities. Default: true.",
  ),
  max_output_tokens: exactOptional(
    whole(1, 4096),
    'Limit of output tokens for all extractions together; other questions need none. Default: 1024.',
  ),
  cache_salt: cacheSalt,
  windows,
};
