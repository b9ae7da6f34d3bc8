import { at } from '../../at.ts';
import type { Json } from '../../contract/answer-shape.ts';
import { LIMITS } from '../limits.ts';
import { canonical } from './matches.ts';
import { type Alternative, itemAt, type Node } from './node.ts';

/** Maximum number of undeclared members in one object. */
export const MOST_EXTRA_MEMBERS = 64;

/**
 * Sets `height` and `size` of each node and alternative: the smallest nesting depth and the smallest length in bytes of
 * a value. They stay Infinity if no value is within `LIMITS.answerDepth` and `LIMITS.shortestAnswer`. Iterates to a
 * fixpoint in at most `LIMITS.answerDepth + 2` rounds.
 *
 * @param nodes parents mostly before their children: each round visits the last node first, so few rounds are needed
 * @param spend spends steps of the compile budget
 */
export function measure(nodes: readonly Node[], spend: (steps: number) => void): void {
  const parts = nodes.reduce((sum, { alternatives }) => sum + alternatives.reduce((n, one) => n + partsOf(one), 1), 0);
  for (const node of nodes) {
    node.height = node.size = Infinity;
    for (const alternative of node.alternatives) alternative.height = alternative.size = Infinity;
  }
  for (let round = 0, changed = true; changed && round <= LIMITS.answerDepth + 1; round++) {
    changed = false;
    spend(parts >> 4);
    for (let i = nodes.length - 1; i >= 0; i--) {
      const node = at(nodes, i);
      for (const alternative of node.alternatives) {
        if (!alternative.from.generated) continue;
        const size = sizeOf(alternative);
        const height = heightOf(alternative);
        if (size > LIMITS.shortestAnswer || height > LIMITS.answerDepth) continue;
        alternative.size = size;
        alternative.height = height;
        if (size < node.size || height < node.height) changed = true;
        node.size = Math.min(node.size, size);
        node.height = Math.min(node.height, height);
      }
    }
  }
}

/**
 * Returns the work of measuring an alternative once, in units of one node: one, plus one for each node that it refers
 * to.
 */
function partsOf(alternative: Alternative): number {
  if (alternative.kind === 'object') return 1 + alternative.members.length;
  return alternative.kind === 'array' ? 2 + alternative.prefix.length : 1;
}

/**
 * Returns the approximate length of an object's member as JSON text: its name in quotes, a colon, its value, whose
 * length is `value`, and a comma.
 */
export const memberSize = (name: string, value: number): number => name.length + 4 + value;

function sizeOf(alternative: Alternative): number {
  switch (alternative.kind) {
    case 'literals':
      return alternative.shortest;
    case 'string':
      return alternative.language.empty ? Infinity : alternative.language.shortestLength + 2;
    case 'number':
      return alternative.language.empty ? Infinity : 1;
    case 'object':
      return sizeOfObject(alternative);
    default: {
      const { min, max, prefix, rest } = alternative;
      if (min > max || (alternative.unique && distinctValues(rest, min) < min)) return Infinity;
      const first = prefix.slice(0, min).reduce((sum, node) => sum + node.size + 1, 2);
      return min > prefix.length ? first + (min - prefix.length) * (rest.size + 1) : first;
    }
  }
}

/** Returns the size of an object with its required members, and as many others as `min` needs. */
function sizeOfObject({ members, extras, min, max }: Alternative & { kind: 'object' }): number {
  const sizes = (required: boolean) =>
    members.filter((one) => one.required === required).map(({ name, node }) => memberSize(name, node.size));
  const needed = sizes(true);
  const missing = min - needed.length;
  if (needed.length > max) return Infinity;
  const size = needed.reduce((sum, one) => sum + one, 2);
  if (missing <= 0) return size;
  const rest = sizes(false)
    .filter(Number.isFinite)
    .sort((a, b) => a - b);
  for (const { names, node } of extras) {
    const count = Math.min(missing, MOST_EXTRA_MEMBERS);
    if (node.size < Infinity) rest.push(...Array.from({ length: names.count(count) }, () => memberSize('', node.size)));
  }
  return rest.length < missing ? Infinity : rest.slice(0, missing).reduce((sum, one) => sum + one, size);
}

/** Counts the different values of a list's items, up to `most`. */
function distinctValues(node: Node, most: number): number {
  const generated = node.alternatives.filter(({ from }) => from.generated);
  const free = generated.flatMap((one) => (one.kind === 'string' || one.kind === 'number' ? [one] : []));
  const isFree = (value: Json) =>
    free.some(
      (one) =>
        (one.kind === 'string' && typeof value === 'string' && one.language.has(value)) ||
        (one.kind === 'number' && typeof value === 'number' && one.language.accepts(String(value))),
    );
  const constants = generated.flatMap((one) => (one.kind === 'literals' ? one.values : []));
  const listed = new Set(constants.filter((value) => !isFree(value)).map(canonical)).size;
  // Several languages may share values, so only the largest counts.
  return listed + Math.max(0, ...free.map(({ language }) => language.count(most)));
}

function heightOf(alternative: Alternative): number {
  switch (alternative.kind) {
    case 'literals':
      return alternative.flattest;
    case 'object': {
      const { members, extras } = alternative;
      const needed = members.filter(({ required }) => required).map(({ node }) => node.height);
      const further = members.filter(({ required }) => !required).map(({ node }) => node.height);
      const missing = alternative.min - needed.length;
      const rest = [...further.sort((a, b) => a - b), ...extras.map(({ node }) => node.height)].slice(0, missing);
      return 1 + Math.max(0, ...needed, ...(missing > 0 ? rest : []));
    }
    case 'array': {
      let height = 0;
      const items = Math.min(alternative.min, alternative.prefix.length + 1);
      for (let i = 0; i < items; i++) height = Math.max(height, itemAt(alternative, i).height);
      return 1 + height;
    }
    default:
      return 0;
  }
}

/**
 * Returns the length of the shortest of some values as JSON text (`shortest`), and the nesting depth of the least
 * nested one (`flattest`). Both are Infinity for no values.
 */
export function measureValues(values: readonly Json[]): { shortest: number; flattest: number } {
  let [shortest, flattest] = [Infinity, Infinity];
  for (const value of values) {
    shortest = Math.min(shortest, JSON.stringify(value).length);
    flattest = Math.min(flattest, depthOf(value));
  }
  return { shortest, flattest };
}

/** Returns the number of objects and arrays that are open at once in a value. */
function depthOf(value: unknown): number {
  let deepest = 0;
  const open: [unknown, number][] = [[value, 0]];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [part, depth] = top;
    if (typeof part !== 'object' || part === null) continue;
    deepest = Math.max(deepest, depth + 1);
    for (const child of Object.values(part)) open.push([child, depth + 1]);
  }
  return deepest;
}
