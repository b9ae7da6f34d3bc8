import { refuse, show } from '../schema/problem.ts';
import type { Alternative, Member, Node } from './node.ts';

/**
 * Narrows the root to alternatives that have exactly the properties `keys`, in this order, all required.
 *
 * @param path path of the keys in the caller's input, for errors
 * @throws AssayError `invalid_value` if the schema lacks one of the keys, or no alternative has all of them
 */
export function selectKeys(root: Node, keys: readonly string[], path: string): void {
  const lists = root.alternatives.map(membersOf);
  for (const [i, key] of keys.entries()) {
    if (!lists.some((members) => members?.some(({ name }) => name === key))) {
      refuse(
        `${path}[${i}]`,
        `${show(key)} is not a property of the schema; use one of its properties.`,
        'invalid_value',
      );
    }
  }
  root.alternatives = root.alternatives.flatMap((alternative, i): Alternative[] => {
    const members = lists[i];
    const chosen = keys.map((key) => members?.find(({ name }) => name === key)).filter((one) => one !== undefined);
    if (alternative.kind !== 'object' || chosen.length < keys.length) return [];
    return [
      {
        ...alternative,
        members: chosen.map((one): Member => ({ ...one, required: true })),
        extras: [],
        min: 0,
        max: Infinity,
      },
    ];
  });
  if (root.alternatives.length === 0)
    refuse(path, 'no alternative of the schema has all of these properties; ask for fewer.', 'invalid_value');
}

function membersOf(alternative: Alternative): readonly Member[] | undefined {
  return alternative.kind === 'object' ? alternative.members : undefined;
}
