import type { Fuel } from '../fuel.ts';
import { alphabetOf, Builder, classesIn, type Dfa } from './dfa.ts';
import type { Assertion, Nfa } from './nfa.ts';

/**
 * Builds a deterministic automaton that accepts the texts that contain a match of a pattern, by the subset
 * construction. `^` and `$` bind the match to the ends of the text.
 *
 * @param start state of `nfa` at the beginning of a match
 * @param end state of `nfa` at the end of a match
 * @throws TooLarge if it needs too many states or steps
 */
export function searchDfa(nfa: Nfa, start: number, end: number, fuel: Fuel): Dfa {
  const sets = [...new Set(nfa.reads.flatMap((edge) => (edge ? [edge.set] : [])))];
  const alphabet = alphabetOf(sets, fuel);
  const builder = new Builder(alphabet, fuel);
  const classesOf = new Map(sets.map((set) => [set, classesIn(alphabet, set)]));
  const closure = closures(nfa, fuel);
  const open: [number, readonly number[]][] = [];
  /** @param first true before anything was read, so that `^` holds */
  const enter = (reached: readonly number[], first: boolean): number => {
    // Once a match without `$` is found, any text may follow.
    if (reached.includes(end)) {
      const found = builder.state('found', true);
      if (found.isNew) builder.linkAll(found.id, found.id);
      return found.id;
    }
    const telling = reached.filter(
      (state) => nfa.reads[state] || nfa.freeEdges(state).some(({ asks }) => asks === 'end'),
    );
    telling.sort((a, b) => a - b);
    const ends = telling.some((state) => !nfa.reads[state]);
    const accepts = ends && closure(telling, (asks) => asks !== 'start' || first).includes(end);
    const { id, isNew } = builder.state(`${first}:${telling.join()}`, accepts);
    if (isNew) open.push([id, telling]);
    return id;
  };
  enter(
    closure([start], (asks) => asks !== 'end'),
    true,
  );
  // A match may begin at any character, so every step also starts a new search.
  const again = closure([start], (asks) => asks === 'none');
  const targetsSeen = new Map<string, number>();
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [id, states] = top;
    const targets: number[][] = [];
    for (const state of states) {
      const edge = nfa.reads[state];
      if (!edge) continue;
      const classes = classesOf.get(edge.set) ?? [];
      fuel.spend(classes.length);
      for (const c of classes) {
        targets[c] ??= [];
        targets[c].push(edge.to);
      }
    }
    for (let c = 0; c < alphabet.classes; c++) {
      const list = targets[c];
      const key = list ? list.join() : '';
      let to = targetsSeen.get(key);
      if (to === undefined) {
        to = enter(
          closure(list ? [...again, ...list] : again, (asks) => asks === 'none'),
          false,
        );
        targetsSeen.set(key, to);
      }
      builder.link(id, c, to);
    }
  }
  return builder.finish();
}

/** Returns the states reachable without reading a character, given which assertions hold. */
function closures(nfa: Nfa, fuel: Fuel): (from: readonly number[], holds: (asks: Assertion) => boolean) => number[] {
  const seen = new Uint32Array(nfa.states);
  let round = 0;
  return (from, holds) => {
    round++;
    const reached: number[] = [];
    const add = (state: number) => {
      if (seen[state] === round) return;
      seen[state] = round;
      reached.push(state);
    };
    from.forEach(add);
    // `reached` grows during this loop.
    for (const state of reached) for (const { to, asks } of nfa.freeEdges(state)) if (holds(asks)) add(to);
    fuel.spend(reached.length);
    return reached;
  };
}
