import type { ProbabilityOptions } from '../backend.ts';
import type { Confidence } from '../schema/question-fields.ts';

/** How a server answers questions where the request does not say. */
export interface QuestionSettings {
  confidence: Confidence;
  /** A choice whose likeliest option is less likely is abstained from; 0: never. */
  abstainBelow: number;
}

export const DEFAULT_SETTINGS: QuestionSettings = { confidence: 'entropy', abstainBelow: 0 };

/** Tokens of all extractions of a request, where it does not say. */
const EXTRACT_TOKENS = 1024;

interface SettingFields {
  orders?: number;
  abstain_below?: number;
  confidence?: Confidence;
  calibrated?: boolean;
  max_output_tokens?: number;
}

/** Returns the server's settings with those of a request in their place. */
export function settingsOf(request: SettingFields, server: QuestionSettings): QuestionSettings {
  return {
    confidence: request.confidence ?? server.confidence,
    abstainBelow: request.abstain_below ?? server.abstainBelow,
  };
}

/** The part of a batch that the settings of a request give. */
export function batchSettings(request: SettingFields): {
  temperature: number;
  maxOutputTokens: number;
  probabilities: ProbabilityOptions;
} {
  const { orders, calibrated = true, max_output_tokens: maxOutputTokens = EXTRACT_TOKENS } = request;
  return {
    temperature: 0,
    maxOutputTokens,
    probabilities: { calibrated, ...(orders === undefined ? {} : { orders }) },
  };
}
