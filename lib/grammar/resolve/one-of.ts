import { at } from '../../at.ts';
import type { NumberRules } from '../number/number-language.ts';
import { refuse } from '../schema/problem.ts';
import { combine, lengthDfa, listDfa } from '../text/combine.ts';
import type { Dfa } from '../text/dfa.ts';
import { StringLanguage } from '../text/string-language.ts';
import { areDisjoint } from './disjoint.ts';
import type { Alternative } from './node.ts';
import { orRefuse } from './or-refuse.ts';
import type { Resolver } from './resolver.ts';

/**
 * Makes `oneOf` mean exactly one: no value that an alternative generates may be valid against another branch. Disjoint
 * branches stay as they are. Where strings or numbers overlap, the overlap is excluded from generation.
 *
 * @throws AssayError `unsupported_schema` for any other overlap, or if the exclusion is too large to compile
 */
export function keepExactlyOne(resolver: Resolver): void {
  for (const node of resolver.nodes) {
    for (const alternative of node.alternatives) {
      const { exclusions, generated } = alternative.from;
      // The resolver has already checked each literal, including against `oneOf`.
      if (!generated || exclusions.length === 0 || alternative.kind === 'literals') continue;
      const overlaps = exclusions.flatMap((id) =>
        resolver
          .node([id])
          .alternatives.filter((other) => !areDisjoint(alternative, other, resolver))
          .map((other) => ({ id, other })),
      );
      if (overlaps.length === 0) continue;
      if (alternative.kind === 'string')
        excludeTexts(
          alternative,
          overlaps.map(({ other }) => other),
          resolver,
        );
      else if (alternative.kind === 'number')
        excludeNumbers(
          alternative,
          overlaps.map(({ other }) => other),
          resolver,
        );
      else {
        const overlap = overlaps.find(({ other }) => !keptApart(alternative, other, resolver));
        if (!overlap) continue;
        const path = resolver.path([overlap.id]);
        refuse(
          path,
          `this branch of oneOf and another may both match one ${alternative.kind}, and then the answer would be invalid; ` +
            'give the branches a required property with different `const` values, or use anyOf.',
        );
      }
    }
  }
}

/**
 * Keeps an object apart from another branch by never writing a member that the branch requires and the object does not:
 * `{"oneOf": [{"required": ["id"]}, {"required": ["slug"]}]}` means one of both members. Returns false if that is not
 * enough.
 */
function keptApart(from: Alternative, other: Alternative, resolver: Resolver): boolean {
  if (from.kind !== 'object' || other.kind !== 'object' || from.extras.length > 0) return false;
  const optional = new Set(from.members.flatMap(({ name, required }) => (required ? [] : [name])));
  const foreign = other.members.find(({ name, required }) => required && optional.has(name));
  if (foreign) from.members = from.members.filter(({ name }) => name !== foreign.name);
  return areDisjoint(from, other, resolver);
}

function excludeTexts(
  from: Alternative & { kind: 'string' },
  overlaps: readonly Alternative[],
  resolver: Resolver,
): void {
  const path = resolver.path(from.from.constraints);
  orRefuse(path, () => {
    const { fuel } = resolver;
    const { min, max } = from.language;
    let dfa: Dfa = from.language.dfa ?? lengthDfa(0, Number.POSITIVE_INFINITY, fuel);
    for (const other of overlaps) {
      dfa = combine(dfa, otherTexts(other), 'minus', fuel);
    }
    from.language = new StringLanguage(dfa, min, max, fuel);
  });

  function otherTexts(other: Alternative): Dfa {
    if (other.kind === 'literals') {
      return listDfa(
        other.values.filter((value) => typeof value === 'string'),
        resolver.fuel,
      );
    }
    if (other.kind !== 'string') throw new Error('texts overlap with texts only');
    const constraints = other.from.constraints.map((id) => at(resolver.document.subschemas, id));
    return resolver.strings.language(other.rules, constraints, 'accepts').asDfa(resolver.fuel);
  }
}

function excludeNumbers(
  from: Alternative & { kind: 'number' },
  overlaps: readonly Alternative[],
  resolver: Resolver,
): void {
  const except = overlaps.flatMap((other): NumberRules[] => {
    if (other.kind === 'number') return [other.rules];
    if (other.kind !== 'literals') throw new Error('numbers overlap with numbers only');
    const numbers = other.values.filter((value) => typeof value === 'number');
    return numbers.map((n) => ({ integer: false, minimum: n, maximum: n, multipleOf: [] }));
  });
  from.language = resolver.numbers(from.rules, from.from.constraints, except);
}
