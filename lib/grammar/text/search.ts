import { at } from '../../at.ts';
import type { Fuel } from '../fuel.ts';
import { classSets, combine, lengthDfa } from './combine.ts';
import { type Alphabet, alphabetOf, Builder, classesIn, classOf, type Dfa, stepOf } from './dfa.ts';
import type { Assertion, Lookahead, Pattern } from './nfa.ts';

/**
 * Describes one way to read the text so far: a state of the pattern's automaton, and what lookaheads demand of the rest
 * of the text.
 */
interface Reading {
  state: number;
  /** Pairs of an index in the list of lookaheads' automata and a state there, as texts in ascending order. */
  demands: readonly string[];
}

/** Describes where a match may begin. */
interface SearchOptions {
  /** True if the match must begin at the start of the text. */
  anchored: boolean;
  /** True if the start of the text is one for `^`. */
  first: boolean;
}

/**
 * Builds a deterministic automaton that accepts the texts that contain a match of a pattern, by the subset
 * construction. `^` and `$` bind the match to the ends of the text. A lookahead is an automaton of its own, which runs
 * beside the readings that depend on it; a negative one is complemented.
 *
 * @throws TooLarge if it needs too many states or steps
 */
export function searchDfa(
  pattern: Pattern,
  fuel: Fuel,
  options: SearchOptions = { anchored: false, first: true },
): Dfa {
  const { nfa, start, end } = pattern;
  const lookaheads = new Lookaheads(pattern, fuel);
  const sets = [...new Set(nfa.reads.flatMap((edge) => (edge ? [edge.set] : [])))];
  const alphabet = alphabetOf([...sets, ...lookaheads.sets], fuel);
  lookaheads.translate(alphabet);
  const builder = new Builder(alphabet, fuel);
  const classesOf = new Map(sets.map((set) => [set, classesIn(alphabet, set)]));
  const all = Array.from({ length: alphabet.classes }, (_, c) => c);
  const open: [number, readonly Reading[]][] = [];

  /** Returns the readings that are reached without a character, given which assertions hold. */
  function closure(from: readonly Reading[], first: boolean, last: boolean): Reading[] {
    const reached = new Map<string, Reading>();
    const add = (state: number, demands: readonly string[]) => {
      const key = `${state}:${demands.join()}`;
      if (!reached.has(key)) reached.set(key, { state, demands });
    };
    for (const { state, demands } of from) add(state, demands);
    // `reached` grows during this loop.
    for (const { state, demands } of reached.values()) {
      for (const { to, asks } of nfa.freeEdges(state)) {
        if (holds(asks, first, last)) add(to, demands);
        else if (typeof asks === 'object') {
          const demand = lookaheads.begin(asks, first);
          if (demand !== null) add(to, demand === '' ? demands : [...new Set([...demands, demand])].sort());
        }
      }
    }
    fuel.spend(reached.size);
    return [...reached.values()];
  }

  function enter(reached: readonly Reading[], first: boolean): number {
    // Once a match without `$` is found, any text may follow.
    if (reached.some(({ state, demands }) => state === end && demands.length === 0)) {
      const found = builder.state('found', true);
      if (found.isNew) builder.linkAll(found.id, found.id);
      return found.id;
    }
    const asksEnd = (state: number) => nfa.freeEdges(state).some(({ asks }) => asks === 'end');
    const telling = reached.filter(({ state }) => nfa.reads[state] || state === end || asksEnd(state));
    const keys = telling.map(({ state, demands }) => (demands.length === 0 ? state : `${state}:${demands.join()}`));
    const accepts =
      telling.some(({ state }) => !nfa.reads[state]) &&
      closure(telling, first, true).some(({ state, demands }) => state === end && lookaheads.met(demands));
    const { id, isNew } = builder.state(`${first}:${keys.sort().join(' ')}`, accepts);
    if (isNew) open.push([id, telling]);
    return id;
  }

  enter(closure([{ state: start, demands: [] }], options.first, false), options.first);
  // A match may begin at any character, so every step also starts a new search.
  const again = options.anchored ? [] : closure([{ state: start, demands: [] }], false, false);
  const targetsSeen = new Map<string, number>();
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [id, readings] = top;
    const targets: Reading[][] = [];
    for (const { state, demands } of readings) {
      const edge = nfa.reads[state];
      // After a match only the demands are left to meet.
      const to = state === end ? end : edge?.to;
      const classes = state === end ? all : edge && classesOf.get(edge.set);
      if (!classes || to === undefined) continue;
      fuel.spend(classes.length * (1 + demands.length));
      for (const c of classes) {
        const left = lookaheads.step(demands, c);
        targets[c] ??= [];
        if (left) targets[c].push({ state: to, demands: left });
      }
    }
    for (let c = 0; c < alphabet.classes; c++) {
      const next = targets[c] ?? [];
      const key = next.map(({ state, demands }) => (demands.length === 0 ? state : `${state}:${demands}`)).join();
      let to = targetsSeen.get(key);
      if (to === undefined) {
        to = enter(closure([...again, ...next], false, false), false);
        targetsSeen.set(key, to);
      }
      builder.link(id, c, to);
    }
  }
  return builder.finish();
}

function holds(asks: Assertion, first: boolean, last: boolean): boolean {
  return asks === 'none' || (asks === 'start' && first) || (asks === 'end' && last);
}

/** Holds the automata of a pattern's lookaheads, each of which reads the rest of the text from where it stands. */
class Lookaheads {
  readonly #automata: Dfa[] = [];
  readonly #indices = new Map<Lookahead, [elsewhere: number, first: number]>();
  /** For each automaton, its class for each class of the common alphabet. */
  #classes: Int32Array[] = [];

  constructor({ nfa }: Pattern, fuel: Fuel) {
    for (let state = 0; state < nfa.states; state++) {
      for (const { asks } of nfa.freeEdges(state)) {
        if (typeof asks !== 'object' || this.#indices.has(asks)) continue;
        const index = (first: boolean) => {
          const match = searchDfa(asks.pattern, fuel, { anchored: true, first });
          const any = () => lengthDfa(0, Number.POSITIVE_INFINITY, fuel);
          return this.#automata.push(asks.negative ? combine(any(), match, 'minus', fuel) : match) - 1;
        };
        this.#indices.set(asks, [index(false), index(true)]);
      }
    }
  }

  /** Sets of code points that the automata distinguish. */
  get sets() {
    return this.#automata.flatMap(classSets);
  }

  /** Prepares for the classes of an alphabet that distinguishes all `sets`. */
  translate({ classes, firsts, of }: Alphabet): void {
    this.#classes = this.#automata.map((dfa) => {
      const own = new Int32Array(classes).fill(-1);
      firsts.forEach((first, i) => {
        const c = of[i] ?? -1;
        if (c >= 0) own[c] = classOf(dfa.alphabet, first);
      });
      return own;
    });
  }

  /** Returns the demand of a lookahead at a position; '' if every text meets it, null if none does. */
  begin(lookahead: Lookahead, first: boolean): string | null {
    const index = this.#indices.get(lookahead)?.[first ? 1 : 0] ?? -1;
    return at(this.#automata, index).states === 0 ? null : this.#demand(index, 0);
  }

  /** Returns what is left of demands after a character of a class; null if they cannot be met. */
  step(demands: readonly string[], c: number): readonly string[] | null {
    if (demands.length === 0) return demands;
    const left = new Set<string>();
    for (const demand of demands) {
      const [index, state] = demand.split('.').map(Number) as [number, number];
      const next = stepOf(at(this.#automata, index), state, at(this.#classes, index)[c] ?? -1);
      if (next < 0) return null;
      const rest = this.#demand(index, next);
      if (rest !== '') left.add(rest);
    }
    return [...left].sort();
  }

  /** Tells whether the text may end with these demands. */
  met(demands: readonly string[]): boolean {
    return demands.every((demand) => {
      const [index, state] = demand.split('.').map(Number) as [number, number];
      return at(this.#automata, index).accepts[state] === 1;
    });
  }

  #demand(index: number, state: number): string {
    const { accepts, alphabet, next } = at(this.#automata, index);
    const row = next.subarray(state * alphabet.classes, (state + 1) * alphabet.classes);
    return accepts[state] === 1 && row.every((to) => to === state) ? '' : `${index}.${state}`;
  }
}
