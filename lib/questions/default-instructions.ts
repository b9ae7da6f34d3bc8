/**
 * Instructions for a question that has none, or none in words: an empty text, or only an image. The edge could not
 * forward empty instructions.
 */
export const DEFAULT_INSTRUCTIONS = {
  predicate: 'Is this so?',
  choice: 'Which of these fits best?',
  score: 'Which level fits best?',
  extract: 'Extract the requested fields.',
} as const;
