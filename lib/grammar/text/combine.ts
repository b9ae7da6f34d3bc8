import type { Fuel } from '../fuel.ts';
import { type CodePoints, codePointOf, LAST_CODE_POINT } from './code-points.ts';
import { alphabetOf, Builder, classOf, type Dfa, stepOf } from './dfa.ts';

/**
 * Builds the product automaton of two automata. It accepts the texts that both accept (`and`), or that `a` accepts and
 * `b` does not (`minus`). Throws `TooLarge` if it needs too many states or steps.
 */
export function combine(a: Dfa, b: Dfa, operation: 'and' | 'minus', fuel: Fuel): Dfa {
  if (a.states === 0 || (b.states === 0 && operation === 'minus')) return a;
  if (b.states === 0) return b;
  const alphabet = alphabetOf([...classSets(a), ...classSets(b)], fuel);
  const classes = classPairs(alphabet.classes, alphabet, a, b);
  const builder = new Builder(alphabet, fuel);
  const open: [number, number, number][] = [];
  const enter = (p: number, q: number): number => {
    if (p < 0 || (q < 0 && operation === 'and')) return -1;
    const inB = q >= 0 && b.accepts[q] === 1;
    const { id, isNew } = builder.state(`${p},${q}`, a.accepts[p] === 1 && inB === (operation === 'and'));
    if (isNew) open.push([id, p, q]);
    return id;
  };
  enter(0, 0);
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [id, p, q] = top;
    fuel.spend(alphabet.classes);
    for (const [c, [ca, cb]] of classes.entries()) {
      builder.link(id, c, enter(stepOf(a, p, ca), q < 0 ? -1 : stepOf(b, q, cb)));
    }
  }
  return builder.finish();
}

/**
 * Returns an automaton that accepts exactly these texts, except those with a character outside `TEXT`. Throws
 * `TooLarge` if it needs too many states or steps.
 */
export function listDfa(texts: readonly string[], fuel: Fuel): Dfa {
  const points = new Set(texts.flatMap((text) => [...text].map(codePointOf)));
  const alphabet = alphabetOf(
    [...points].map((point) => [point, point]),
    fuel,
  );
  const builder = new Builder(alphabet, fuel);
  const all = new Set(texts);
  builder.state('', all.has(''));
  for (const text of texts) {
    let from = 0;
    let prefix = '';
    for (const char of text) {
      prefix += char;
      fuel.spend(prefix.length);
      const c = classOf(alphabet, codePointOf(char));
      if (c < 0) break; // The character is outside `TEXT`, so this text is never generated.
      const { id } = builder.state(prefix, all.has(prefix));
      builder.link(from, c, id);
      from = id;
    }
  }
  return builder.finish();
}

/**
 * Returns an automaton that accepts all texts of `min` to `max` characters; `max` may be Infinity. Throws `TooLarge` if
 * it needs too many states or steps.
 */
export function lengthDfa(min: number, max: number, fuel: Fuel): Dfa {
  const alphabet = alphabetOf([], fuel);
  const builder = new Builder(alphabet, fuel);
  const last = max === Number.POSITIVE_INFINITY ? min : max;
  for (let length = 0; length <= last; length++) {
    builder.state(String(length), length >= min);
    fuel.spend(1);
    if (length > 0) builder.linkAll(length - 1, length);
  }
  if (max === Number.POSITIVE_INFINITY) builder.linkAll(last, last);
  return builder.finish();
}

/** Returns, for each class of an automaton's alphabet, its set of code points. */
export function classSets({ alphabet }: Dfa): CodePoints[] {
  const sets: number[][] = Array.from({ length: alphabet.classes }, () => []);
  alphabet.of.forEach((c, i) => {
    if (c >= 0) sets[c]?.push(alphabet.firsts[i] ?? 0, (alphabet.firsts[i + 1] ?? LAST_CODE_POINT + 1) - 1);
  });
  return sets;
}

/** Returns, for each class of a finer alphabet, the classes of both automata that contain it. */
function classPairs(count: number, fine: Dfa['alphabet'], a: Dfa, b: Dfa): (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = Array.from({ length: count }, () => [-1, -1]);
  fine.firsts.forEach((first, i) => {
    const c = fine.of[i] ?? -1;
    if (c >= 0) pairs[c] = [classOf(a.alphabet, first), classOf(b.alphabet, first)];
  });
  return pairs;
}
