import type { ProbabilityOptions } from '../backend.ts';
import { stringifyAsWritten } from '../json/written-numbers.ts';
import type { Confidence } from '../schema/question-fields.ts';
import type { SpanUnit } from './evidence.ts';

/**
 * Holds the settings for answers in the decision formats. Those of the server apply where a request does not set its
 * own.
 */
export interface QuestionSettings {
  /** Formula of the confidence; absent: that of the format, `margin` in System One and `entropy` in Decisions. */
  confidence?: Confidence | undefined;
  /**
   * Least probability, from 0 to 1, with which a choice is answered: if the likeliest option is less likely, the server
   * abstains. At 0 it never abstains.
   */
  abstainBelow: number;
  /** Unit of the places of evidence; UTF-16 code units if absent. */
  spanUnit?: SpanUnit;
}

export const DEFAULT_SETTINGS: QuestionSettings = { abstainBelow: 0 };

/** Default limit of output tokens for all extractions of a request together. */
const EXTRACT_TOKENS = 1024;

interface SettingFields {
  orders?: number;
  abstain_below?: number;
  confidence?: Confidence;
  calibrated?: boolean;
  max_error?: number;
  max_output_tokens?: number;
  span_unit?: SpanUnit;
  cache_salt?: string | null | undefined;
}

/** Returns the settings for a request: its own, or else the server's. */
export function settingsOf(request: SettingFields, server: QuestionSettings): QuestionSettings {
  return {
    confidence: request.confidence ?? server.confidence,
    abstainBelow: request.abstain_below ?? server.abstainBelow,
    ...(request.span_unit ? { spanUnit: request.span_unit } : {}),
  };
}

/** Returns the members of a `TaskBatch` that a request's settings determine. */
export function batchSettings(request: SettingFields): {
  temperature: number;
  maxOutputTokens: number;
  probabilities: ProbabilityOptions;
  cacheSalt?: string;
} {
  const {
    orders,
    calibrated = true,
    max_error: maxError,
    max_output_tokens: maxOutputTokens = EXTRACT_TOKENS,
  } = request;
  return {
    temperature: 0,
    maxOutputTokens,
    probabilities: {
      calibrated,
      ...(orders === undefined ? {} : { orders }),
      ...(maxError === undefined ? {} : { maxError }),
    },
    ...(request.cache_salt ? { cacheSalt: request.cache_salt } : {}),
  };
}

/**
 * Formats a JSON value as text for the model: a string as it is, any other value as one line of JSON. Its author would
 * write `, ` and `: `, as Python does; with the starter model, questions about such a line are answered better than
 * about indented JSON.
 */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : stringifyAsWritten(value, true);
}

/**
 * Instructions, by type of question, for a question that has none in words: no instructions, an empty text, or only an
 * image. An edge could not forward empty instructions.
 */
export const DEFAULT_INSTRUCTIONS = {
  predicate: 'Is this so?',
  choice: 'Which of these fits best?',
  score: 'Which level fits best?',
  multi: 'Which of these apply?',
  extract: 'Extract the requested fields.',
} as const;
