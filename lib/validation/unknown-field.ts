import { nearestName } from '../nearest-name.ts';
import type { Finding } from './rules.ts';

/**
 * Fields that callers send for an effect that this API offers in another way. The advice applies to schemas that have
 * the field `where`.
 */
const INSTEAD: readonly { names: readonly string[]; where: string; advice: string }[] = [
  {
    names: ['reason', 'reasoning', 'explain', 'explanation'],
    where: 'question',
    advice: 'To get a reason, ask for it in instruction, such as "Give a short reason"',
  },
  { names: ['max_tokens', 'max_completion_tokens'], where: 'max_output_tokens', advice: 'Send max_output_tokens' },
];

/**
 * Returns the finding for a field that the schema does not define. `known` lists the fields that it defines. The
 * message suggests the field that was probably meant or what to do instead; otherwise it says to remove the field.
 */
export function unknownField(name: string, known: readonly string[]): Finding {
  return { code: 'unknown_field', message: `is not a field of this request. ${adviceOn(name, known)}` };
}

function adviceOn(name: string, known: readonly string[]): string {
  const meant = nearestName(name, known);
  if (meant !== undefined) return `Did you mean “${meant}”? If not, remove it`;
  const instead = INSTEAD.find(({ names, where }) => names.includes(name) && known.includes(where));
  return instead?.advice ?? 'Remove it';
}
