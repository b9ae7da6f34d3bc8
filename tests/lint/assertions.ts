import { stripTypeScriptTypes } from 'node:module';

/**
 * Non-null assertions that may exist outside tests. Do not raise it: instead of an assertion, use a type that cannot be
 * empty, destructuring, or `at` (`lib/at.ts`).
 */
const LIMIT = 150;

/** Counts the non-null assertions (`value!`) of a file; those of tests do not count. */
export function countAssertions(file: string, source: string): number {
  if (file.startsWith('tests/') || /\.(test|fixture)\.ts$/.test(file) || !source.includes('!')) return 0;
  // Node replaces each part of the type syntax by spaces and keeps the rest in its place.
  const script = stripTypeScriptTypes(source);
  return [...source.matchAll(/!/g)].filter(({ index }) => script[index] === ' ').length;
}

/** Returns the fault of a repository with this many non-null assertions, as a list; an empty one within the limit. */
export function assertionViolation(count: number): string[] {
  if (count <= LIMIT) return [];
  return [`${count} non-null assertions outside tests; at most ${LIMIT}. Use a better type, or at() of lib/at.ts`];
}
