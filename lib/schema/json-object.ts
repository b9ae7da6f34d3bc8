import * as v from 'valibot';

/**
 * The schema of any JSON object, which keeps it exactly as sent. Valibot's own object schemas would drop a member named
 * `__proto__`.
 */
export const jsonObject = v.pipe(
  v.custom<{ readonly [key: string]: unknown }>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  ),
  v.metadata({ type: 'object', additionalProperties: true }),
);
