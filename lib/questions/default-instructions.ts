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
