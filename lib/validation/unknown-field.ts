import { closestMatch } from 'leven';
import type { Finding } from './rules.ts';

/** So many characters may differ; more would suggest what nobody meant. */
const MOST_DIFFERENT = 2;
/** Longer names are no slip of the pen, and comparing takes time that grows with their length. */
const LONGEST = 64;

/** What is said of a member that the schema does not have, with the name that was probably meant. */
export function unknownField(name: string, known: readonly string[]): Finding {
  const meant = nearest(name, known);
  const advice = meant === undefined ? 'Leave it out' : `Did you mean “${meant}”? Else leave it out`;
  return { code: 'unknown_field', message: `is not a field of this request. ${advice}` };
}

/** Case, `_` and `-` do not count, so that `maxOutputTokens` finds `max_output_tokens`. At most a third of a name may differ. */
function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  const plain = new Map(known.map((field) => [plainName(field), field]));
  const said = plainName(name);
  const maxDistance = Math.min(MOST_DIFFERENT, Math.floor(said.length / 3));
  const found = closestMatch(said, [...plain.keys()], { maxDistance });
  return found === undefined ? undefined : plain.get(found);
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}
