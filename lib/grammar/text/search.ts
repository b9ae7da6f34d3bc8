import { alphabetOf, Builder, classesIn, type Dfa, type Effort } from './dfa.ts';
import type { Assertion, Nfa } from './nfa.ts';

/**
 * The texts in which the pattern is found anywhere (`^` and `$` bind it to the ends), by the subset construction.
 */
export function searchDfa(nfa: Nfa, start: number, end: number, effort: Effort): Dfa {
  const sets = [...new Set(nfa.reads.flatMap((edge) => (edge ? [edge.set] : [])))];
  const alphabet = alphabetOf(sets, effort);
  const builder = new Builder(alphabet);
  const classesOf = new Map(sets.map((set) => [set, classesIn(alphabet, set)]));
  const closure = (from: readonly number[], holds: (asks: Assertion) => boolean): Set<number> => {
    const reached = new Set(from);
    for (const state of reached) {
      effort.spend(1);
      for (const { to, asks } of nfa.free[state]!) if (holds(asks)) reached.add(to);
    }
    return reached;
  };
  const open: [number, readonly number[]][] = [];
  /** @param first whether nothing was read yet, so that `^` holds */
  const enter = (states: Set<number>, first: boolean): number => {
    // Once found without `$`, any text may follow.
    if (states.has(end)) {
      const found = builder.state('found', true);
      if (found.isNew) builder.rows[found.id]!.fill(found.id);
      return found.id;
    }
    const reading = [...states].filter(
      (state) => nfa.reads[state] || nfa.free[state]!.some(({ asks }) => asks === 'end'),
    );
    reading.sort((a, b) => a - b);
    const accepts = closure(reading, (asks) => asks !== 'start' || first).has(end);
    const { id, isNew } = builder.state(`${first}:${reading.join()}`, accepts);
    if (isNew) open.push([id, reading]);
    return id;
  };
  const again = [...closure([start], (asks) => asks === 'none')];
  enter(
    closure([start], (asks) => asks !== 'end'),
    true,
  );
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [id, states] = top;
    const targets: number[][] = Array.from({ length: alphabet.classes }, () => []);
    for (const state of states) {
      const edge = nfa.reads[state];
      if (!edge) continue;
      const classes = classesOf.get(edge.set)!;
      effort.spend(classes.length);
      for (const c of classes) targets[c]!.push(edge.to);
    }
    const known = new Map<string, number>();
    targets.forEach((list, c) => {
      const key = list.join();
      let to = known.get(key);
      if (to === undefined) {
        to = enter(
          closure([...again, ...list], (asks) => asks === 'none'),
          false,
        );
        known.set(key, to);
      }
      builder.rows[id]![c] = to;
    });
  }
  return builder.finish(effort);
}
