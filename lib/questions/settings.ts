import type { ProbabilityOptions } from '../backend.ts';
import type { Confidence } from '../schema/question-fields.ts';

/** Holds the server's defaults for settings that a request omits. */
export interface QuestionSettings {
  confidence: Confidence;
  /** The server abstains from a choice whose most probable option is below this probability; 0: it never abstains. */
  abstainBelow: number;
}

export const DEFAULT_SETTINGS: QuestionSettings = { confidence: 'entropy', abstainBelow: 0 };

/** Default token budget of all extractions of a request. */
const EXTRACT_TOKENS = 1024;

interface SettingFields {
  orders?: number;
  abstain_below?: number;
  confidence?: Confidence;
  calibrated?: boolean;
  max_output_tokens?: number;
}

/** Returns the server's settings, overridden by those of a request. */
export function settingsOf(request: SettingFields, server: QuestionSettings): QuestionSettings {
  return {
    confidence: request.confidence ?? server.confidence,
    abstainBelow: request.abstain_below ?? server.abstainBelow,
  };
}

/** Returns the part of a batch that a request's settings determine. */
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
