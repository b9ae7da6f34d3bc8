/**
 * The most characters of a decision without options and of a reason: a short answer, and a few sentences. Both end
 * there as if they were complete.
 */
export const FREE_TEXT = { value: 400, reason: 2_000 } as const;
