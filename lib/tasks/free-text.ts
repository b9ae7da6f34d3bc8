/**
 * Maximum lengths, in code points, of the texts that a decide task may generate: `value`, a short answer to a question
 * without options, and `reason`, a few sentences. A text that reaches its limit ends there and counts as complete.
 */
export const FREE_TEXT = { value: 400, reason: 2_000 } as const;
