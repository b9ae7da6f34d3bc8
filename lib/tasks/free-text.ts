/**
 * Maximum length in characters of a decision without options (`value`), which is a short answer, and of a reason
 * (`reason`), which is a few sentences. A text that reaches its limit ends there and counts as complete.
 */
export const FREE_TEXT = { value: 400, reason: 2_000 } as const;
