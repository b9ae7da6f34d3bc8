import { at } from '../../at.ts';
import { LIMITS } from '../limits.ts';
import type { SchemaDocument } from '../schema/document.ts';
import { refuse } from '../schema/problem.ts';

/**
 * Describes one way to satisfy a set of subschemas, by indices into `SchemaDocument.subschemas`: those that must all
 * match (`constraints`), and those that must not match because of `oneOf` (`exclusions`).
 */
export interface SchemaLeaf {
  constraints: readonly number[];
  exclusions: readonly number[];
}

interface Branch {
  constraints: number[];
  exclusions: number[];
  /** Subschemas that are still to be expanded. */
  pending: number[];
  /** Choices that are still to be made: the subschemas of an `anyOf`, or of a `oneOf` (`exactlyOne`). */
  choices: { from: readonly number[]; exactlyOne: boolean }[];
}

/**
 * Resolves `$ref`, `allOf`, `anyOf` and `oneOf`: returns all ways to satisfy the subschemas `ids` at once, in the order
 * sent. Always terminates, because `parseSchema` refuses schemas that refer to themselves in place.
 *
 * @param spend spends steps of the compile budget; what it throws ends the search
 * @throws AssayError `unsupported_schema` for more than `LIMITS.alternatives` ways
 */
export function leaves(
  ids: readonly number[],
  { subschemas }: SchemaDocument,
  spend: (steps: number) => void,
): SchemaLeaf[] {
  const found: SchemaLeaf[] = [];
  const open: Branch[] = [{ constraints: [], exclusions: [], pending: [...ids], choices: [] }];
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    if (!expand(branch)) continue;
    const choice = branch.choices.shift();
    if (!choice) {
      const { constraints, exclusions } = branch;
      found.push({ constraints, exclusions });
      if (found.length > LIMITS.alternatives) {
        const { path } = at(subschemas, at(ids, 0));
        refuse(path, `its anyOf and oneOf multiply to more than ${LIMITS.alternatives} alternatives; use fewer.`);
      }
      continue;
    }
    // Pushed in reverse, so the stack returns the branches in the order sent.
    for (let i = choice.from.length - 1; i >= 0; i--) {
      const excluded = branch.exclusions.length + (choice.exactlyOne ? choice.from.length : 0);
      spend(1 + branch.constraints.length + ((branch.choices.length + excluded) >> 3));
      const others = choice.exactlyOne ? choice.from.filter((_, other) => other !== i) : [];
      open.push({
        constraints: [...branch.constraints],
        exclusions: [...branch.exclusions, ...others],
        pending: [at(choice.from, i)],
        choices: [...branch.choices],
      });
    }
  }
  return found;

  /** Expands all pending subschemas. Returns false if nothing can match. */
  function expand(branch: Branch): boolean {
    while (branch.pending.length > 0) {
      const id = branch.pending.shift()!;
      if (branch.constraints.includes(id)) continue;
      spend(1 + branch.constraints.length);
      const schema = at(subschemas, id);
      if (schema.nothing) return false;
      branch.constraints.push(id);
      if (schema.ref !== undefined) branch.pending.push(schema.ref);
      branch.pending.push(...schema.allOf);
      if (schema.anyOf) branch.choices.push({ from: schema.anyOf, exactlyOne: false });
      if (schema.oneOf) branch.choices.push({ from: schema.oneOf, exactlyOne: true });
    }
    return haveCommonType(branch.constraints);
  }

  /**
   * Tells whether some type satisfies all these subschemas. A branch without such a type is dropped early, before its
   * choices are multiplied out.
   */
  function haveCommonType(constraints: readonly number[]): boolean {
    let left: Set<string> | undefined;
    for (const id of constraints) {
      const types = at(subschemas, id).types;
      if (!types) continue;
      const names: readonly string[] = types.includes('number') ? [...types, 'integer'] : types;
      left = new Set(left ? names.filter((name) => left?.has(name)) : names);
    }
    return left === undefined || left.size > 0;
  }
}
