import type { Json } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import { canonical, isOfType } from '../resolve/matches.ts';
import { isAnnotation } from './keywords.ts';
import type { Draft } from './references.ts';

/** Number of constant alternatives from which they are merged; fewer are cheap, and keep their order. */
const MANY = 16;

/**
 * Merges many constant alternatives (`const` or `enum`, perhaps with `type`) of one `anyOf` or `oneOf` into a single
 * one, as generators write an enumeration whose values have descriptions. A value that two branches of a `oneOf` have
 * in common is valid in neither.
 */
export function mergeConstants(subschemas: Draft[]): void {
  for (const draft of [...subschemas]) {
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = draft[keyword] ?? [];
      const constants = branches.filter((id) => isConstant(at(subschemas, id)));
      if (constants.length < MANY) continue;
      const counts = new Map<string, number>();
      const all = constants.flatMap((id) => valuesOf(at(subschemas, id)));
      for (const value of all) counts.set(canonical(value), (counts.get(canonical(value)) ?? 0) + 1);
      const fresh = keyword === 'anyOf' ? all : all.filter((value) => counts.get(canonical(value)) === 1);
      const { types: _, ...first } = at(subschemas, at(constants, 0));
      const merged = subschemas.push({ ...first, json: true, values: [fresh], has: new Set(['enum']) }) - 1;
      const rest = branches.filter((id) => !constants.includes(id));
      const place = branches.indexOf(at(constants, 0));
      draft[keyword] = [...rest.slice(0, place), merged, ...rest.slice(place)];
    }
  }
}

function isConstant({ has, values, nothing }: Draft): boolean {
  return (
    values.length === 1 &&
    !nothing &&
    [...has].every((name) => ['const', 'enum', 'type'].includes(name) || isAnnotation(name))
  );
}

function valuesOf({ values, types }: Draft): readonly Json[] {
  return at(values, 0).filter((value) => !types || types.some((type) => isOfType(value, type)));
}
