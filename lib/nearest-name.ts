import { closestMatch } from 'leven';

/** Largest edit distance of a name that is suggested; a larger one would allow unrelated names. */
const MOST_DIFFERENT = 2;
/**
 * Longest name that is compared. A longer one is hardly a typo, and comparing takes time that grows with the length.
 */
const LONGEST = 64;

/**
 * Returns the known name that was probably meant; undefined if none is close enough. Case, `_` and `-` are ignored, so
 * `maxOutputTokens` finds `max_output_tokens`. At most two characters, and at most a third of them, may differ. A name
 * over 64 characters finds none.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  const plain = new Map(known.map((one) => [plainName(one), one]));
  const said = plainName(name);
  const maxDistance = Math.min(MOST_DIFFERENT, Math.floor(said.length / 3));
  const found = closestMatch(said, [...plain.keys()], { maxDistance });
  return found === undefined ? undefined : plain.get(found);
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}
