import { at } from '../../at.ts';
import { TooLarge } from '../fuel.ts';
import { numbersAreDisjoint } from '../number/number-language.ts';
import { combine } from '../text/combine.ts';
import { StringLanguage } from '../text/string-language.ts';
import { matches, matchesAlone } from './matches.ts';
import { type Alternative, itemAt, type Node, type ObjectAlternative } from './node.ts';
import type { Resolver } from './resolver.ts';

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
export function areDisjoint(a: Alternative, b: Alternative, resolver: Resolver, depth = MOST_DEPTH): boolean {
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
