import type { TaskAnswer } from '../backend.ts';
import { leavesOf } from '../json/leaves.ts';
import { evidenceOf, type SourceText, type SpanUnit } from './evidence.ts';

/**
 * Returns the members `data`, `fields` and `complete` of an extract answer as JSON text without braces, so members keep
 * their order and numbers their digits. `fields` has an entry for each value whose probability is known.
 *
 * @param sources texts of the request in which evidence is searched
 * @param name name of the member with the data
 * @param unit unit of the places of evidence
 */
export function extractedMembers(
  { json, fields = [] }: TaskAnswer,
  sources: readonly SourceText[],
  { name = 'data', unit }: { name?: string; unit?: SpanUnit | undefined } = {},
): string {
  const leaves = leavesOf(json);
  const probabilities = new Map(fields.map(({ path, probability }) => [path, probability]));
  const reached = leaves.flatMap(({ path, start, end }) => {
    const probability = probabilities.get(path);
    if (probability === undefined) return [];
    const written = json.slice(start, end);
    const evidence = evidenceOf(JSON.parse(written), written, sources, unit);
    return [
      `{"path":${JSON.stringify(path)},"value":${written},"probability":${JSON.stringify(probability)},` +
        `"evidence":${JSON.stringify(evidence)}}`,
    ];
  });
  return `"${name}":${json},"fields":[${reached.join(',')}],"complete":${reached.length === leaves.length}`;
}
