import type { FieldProbability, TaskAnswer } from '../backend.ts';
import { leavesOf } from '../json/leaves.ts';
import { evidenceOf, type FoundEvidence, indexIn, type SourceText, type SpanUnit } from './evidence.ts';

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
  const byPath = new Map(fields.map((field) => [field.path, field]));
  const taken: FoundEvidence[] = [];
  const reached = leaves.flatMap(({ path, start, end }) => {
    const field = byPath.get(path);
    if (!field) return [];
    const { probability } = field;
    const written = json.slice(start, end);
    const evidence =
      spanIn(sources, field, unit) ??
      evidenceOf(JSON.parse(written), written, sources, { unit, field: nameOf(path), taken });
    return [
      `{"path":${JSON.stringify(path)},"value":${written},"probability":${JSON.stringify(probability)},` +
        `"evidence":${JSON.stringify(evidence)}}`,
    ];
  });
  return `"${name}":${json},"fields":[${reached.join(',')}],"complete":${reached.length === leaves.length}`;
}

/** Returns the evidence that the model itself found in the only text of a request; null if there is none. */
function spanIn(
  [only, ...more]: readonly SourceText[],
  { evidence }: FieldProbability,
  unit: SpanUnit = 'utf16',
): FoundEvidence | null {
  if (!evidence || !only || more.length > 0) return null;
  const [start, end] = [evidence.start, evidence.end].map((index) => indexIn(only, index, unit));
  return { source: only.source, start: start ?? 0, end: end ?? 0 };
}

/** Returns the name of the innermost member that a JSON Pointer leads through, without the indices of items. */
function nameOf(path: string): string {
  const name = path.split('/').findLast((step) => !/^\d+$/.test(step)) ?? '';
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
