import type { Json } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import { LIMITS } from '../limits.ts';
import { type Alternative, itemAt, type Node } from './node.ts';

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
    case 'object': {
      let size = 2;
      for (const { name, node, required } of alternative.members) if (required) size += memberSize(name, node.size);
      return size;
    }
    default: {
      const { min, max, prefix, rest } = alternative;
      if (min > max) return Infinity;
      const first = prefix.slice(0, min).reduce((sum, node) => sum + node.size + 1, 2);
      return min > prefix.length ? first + (min - prefix.length) * (rest.size + 1) : first;
    }
  }
}

function heightOf(alternative: Alternative): number {
  switch (alternative.kind) {
    case 'literals':
      return alternative.flattest;
    case 'object': {
      let height = 0;
      for (const { node, required } of alternative.members) if (required) height = Math.max(height, node.height);
      return 1 + height;
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
