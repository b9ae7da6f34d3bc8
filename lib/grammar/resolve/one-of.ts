import { at } from '../../at.ts';
import { TooLarge } from '../fuel.ts';
import { type NumberRules, numbersAreDisjoint } from '../number/number-language.ts';
import { refuse } from '../schema/problem.ts';
import { combine, lengthDfa, listDfa } from '../text/combine.ts';
import type { Dfa } from '../text/dfa.ts';
import { StringLanguage } from '../text/string-language.ts';
import { matches, matchesAlone, orRefuse } from './matches.ts';
import { type Alternative, itemAt, type Node, type ObjectAlternative } from './node.ts';
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

/** Depth to which members and items are compared. Without a bound, comparing recursive schemas would never end. */
const MOST_DEPTH = 6;

/** Cost of comparing two number rules, in steps of `Fuel`: exact decimals have up to 300 digits. */
const NUMBER_STEPS = 20;

/**
 * Tells whether it is certain that no value which `a` generates is valid against `b`. Returns false in doubt.
 *
 * @param a alternative of which only the generated values count
 * @param b alternative of which all valid values count, generated or not
 * @param depth levels of members and items that are still compared
 */
function areDisjoint(a: Alternative, b: Alternative, resolver: Resolver, depth = MOST_DEPTH): boolean {
  resolver.spend(1);
  if (a.kind === 'literals') {
    return a.values.every((value) => !b.from.constraints.every((id) => matches(value, id, resolver)));
  }
  if (b.kind === 'literals') {
    // Ignores `oneOf`, because this check serves to establish it and so must not rely on it.
    return b.values.every((value) => !a.from.constraints.every((id) => matchesAlone(value, id, resolver)));
  }
  if (a.kind === 'string' && b.kind === 'string') return areDisjointStrings(a, b, resolver);
  if (a.kind === 'number' && b.kind === 'number') {
    resolver.spend(NUMBER_STEPS);
    return numbersAreDisjoint(a.rules, b.rules);
  }
  if (a.kind === 'object' && b.kind === 'object') return depth > 0 && areDisjointObjects(a, b, resolver, depth);
  if (a.kind === 'array' && b.kind === 'array') {
    if (a.min > b.allowed || b.min > a.max) return true;
    if (depth === 0) return false;
    // Compares the items that both arrays must have. All items after the prefixes have the same schema, so one is
    // enough.
    const common = Math.min(Math.max(a.min, b.min), Math.max(a.prefix.length, b.prefix.length) + 1);
    return Array.from({ length: common }, (_, i) => i).some((i) =>
      areDisjointNodes(itemAt(a, i), itemAt(b, i), resolver, depth - 1),
    );
  }
  return true;
}

function areDisjointNodes(a: Node, b: Node, resolver: Resolver, depth: number): boolean {
  return a.alternatives.every(
    (one) => !one.from.generated || b.alternatives.every((other) => areDisjoint(one, other, resolver, depth)),
  );
}

function areDisjointStrings(
  a: Alternative & { kind: 'string' },
  b: Alternative & { kind: 'string' },
  resolver: Resolver,
): boolean {
  if (a.rules.min > b.rules.max || b.rules.min > a.rules.max) return true;
  const constraints = b.from.constraints.map((id) => at(resolver.document.subschemas, id));
  const other = resolver.strings.language(b.rules, constraints, 'accepts');
  if (!a.language.dfa || !other.dfa) return a.language.empty || other.empty;
  const { fuel } = resolver;
  try {
    const both = combine(a.language.dfa, other.dfa, 'and', fuel);
    const [min, max] = [Math.max(a.language.min, other.min), Math.min(a.language.max, other.max)];
    return new StringLanguage(both, min, max, fuel).empty;
  } catch (error) {
    if (error instanceof TooLarge) return false;
    throw error;
  }
}

/**
 * Tells whether it is certain that no object matches both: a required member of one is not allowed in the other, or its
 * values are disjoint there.
 */
function areDisjointObjects(a: ObjectAlternative, b: ObjectAlternative, resolver: Resolver, depth: number): boolean {
  const always = new Set([...a.members, ...b.members].flatMap(({ name, required }) => (required ? [name] : [])));
  for (const name of always) {
    resolver.spend(a.members.length + b.members.length);
    const inA = a.members.find((one) => one.name === name)?.node ?? a.extras.find(({ names }) => names.has(name))?.node;
    if (!inA) return true;
    const inB = b.members.find((one) => one.name === name)?.node ?? b.others;
    if (inB === 'nothing') return true;
    if (inB !== 'any' && areDisjointNodes(inA, inB, resolver, depth - 1)) return true;
  }
  return false;
}
