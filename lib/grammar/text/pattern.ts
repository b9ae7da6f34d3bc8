import {
  ALL,
  type CodePoints,
  codePointOf,
  complement,
  DIGIT,
  intersection,
  LINE_END,
  SPACE,
  TEXT,
  unicodeProperty,
  union,
  WORD,
} from './code-points.ts';
import { type Fragment, Nfa, type Pattern } from './nfa.ts';

/**
 * Reports a pattern that no automaton can enforce. The message continues a sentence whose subject is the pattern, as in
 * "uses lookahead".
 */
export class UnsupportedPattern extends Error {}

/** Escapes a text for use in the pattern of a regular expression, where it then matches exactly itself. */
export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/gu, '\\$&');
}

interface Group {
  alternatives: Fragment[];
  parts: Fragment[];
}

/**
 * Compiles an ECMA-262 pattern (with the `u` flag, as JSON Schema requires) to a nondeterministic automaton.
 *
 * @param source a pattern that `new RegExp(source, 'u')` has accepted
 * @throws UnsupportedPattern for lookbehind, back references, word boundaries and inline modifiers, which are not
 *   compiled to an automaton
 * @throws TooLarge for more than `LIMITS.patternParts` states
 */
export function parsePattern(source: string): Pattern {
  const chars = [...source];
  const nfa = new Nfa();
  const outer: Group[] = [];
  let group: Group = { alternatives: [], parts: [] };
  let at = 0;
  const closeAlternative = () => {
    group.alternatives.push(nfa.sequence(group.parts));
    group.parts = [];
  };
  const add = (fragment: Fragment) => group.parts.push(fragment);
  for (let char = chars[at++]; char !== undefined; char = chars[at++]) {
    if (char === '(' && chars[at] === '?' && (chars[at + 1] === '=' || chars[at + 1] === '!')) {
      const close = closingParenthesis(chars, at);
      const pattern = parsePattern(chars.slice(at + 2, close).join(''));
      add(nfa.empty({ pattern, negative: chars[at + 1] === '!' }));
      at = close + 1;
      continue;
    }
    if (char === '(') {
      at = groupStart(chars, at);
      outer.push(group);
      group = { alternatives: [], parts: [] };
      continue;
    }
    if (char === '|') {
      closeAlternative();
      continue;
    }
    if (char === ')') {
      closeAlternative();
      const { alternatives } = group;
      group = outer.pop() ?? { alternatives: [], parts: [] };
      add(nfa.either(alternatives));
    } else if (char === '^') add(nfa.empty('start'));
    else if (char === '$') add(nfa.empty('end'));
    else if (char === '.') add(nfa.set(complement(LINE_END)));
    else if (char === '[') {
      const [set, next] = classSet(chars, at);
      at = next;
      add(nfa.set(text(set)));
    } else if (char === '\\') {
      const [set, next] = escapeSet(chars, at);
      at = next;
      add(nfa.set(text(set)));
    } else add(nfa.set(text(single(codePointOf(char)))));
    const quantifier = readQuantifier(chars, at);
    const last = quantifier && group.parts.pop();
    if (quantifier && last) {
      at = quantifier.next;
      add(nfa.repeat(last, quantifier.min, quantifier.max));
    }
  }
  closeAlternative();
  const { start, end } = nfa.either(group.alternatives);
  return { nfa, start, end };
}

const single = (codePoint: number): CodePoints => [codePoint, codePoint];
const text = (set: CodePoints): CodePoints => intersection(set, TEXT);

/** Returns the index of the parenthesis that closes the group which is open at `from`. */
function closingParenthesis(chars: readonly string[], from: number): number {
  let depth = 1;
  let inClass = false;
  for (let at = from; at < chars.length; at++) {
    const char = chars[at];
    if (char === '\\') at++;
    else if (inClass) inClass = char !== ']';
    else if (char === '[') inClass = true;
    else if (char === '(') depth++;
    else if (char === ')' && --depth === 0) return at;
  }
  throw new SyntaxError('a group is not closed');
}

/** The characters that may stand behind a backslash with the `u` flag, to mean themselves. */
const SYNTAX = '^$\\.*+?()[]{}|/';

/**
 * Writes a pattern as the `u` flag requires it: without the backslash before other punctuation (`\\-`, `\\@`), with one
 * before braces and brackets that mean themselves, and with the names that Python, Rust and Go have for the ends of the
 * text and for named groups. A pattern that is valid with the flag stays as it is.
 */
export function strictPattern(source: string): string {
  const chars = [...source];
  let strict = '';
  let inClass = false;
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? '';
    const next = chars[at + 1] ?? '';
    if (char === '\\') {
      at++;
      if (!inClass && next === 'A') strict += '^';
      else if (!inClass && (next === 'Z' || next === 'z')) strict += '$';
      else if (SYNTAX.includes(next) || /[A-Za-z0-9]/.test(next) || (inClass && next === '-')) strict += char + next;
      else strict += next;
      if (/[pPu]/u.test(next) && chars[at + 1] === '{') {
        const close = chars.indexOf('}', at);
        strict += chars.slice(at + 1, close + 1).join('');
        at = close;
      }
    } else if (inClass) {
      inClass = char !== ']';
      strict += char;
    } else if (char === '[') {
      inClass = true;
      strict += char;
    } else if (char === '(' && next === '?' && chars[at + 2] === 'P' && chars[at + 3] === '<') {
      strict += '(?<';
      at += 3;
    } else if (char === '{') {
      const bounds = /^\{\d+(?:,\d*)?\}/.exec(chars.slice(at, at + 12).join(''))?.[0];
      strict += bounds ?? '\\{';
      at += (bounds?.length ?? 1) - 1;
    } else if (char === '}' || char === ']') strict += `\\${char}`;
    else strict += char;
  }
  return strict;
}

function groupStart(chars: readonly string[], at: number): number {
  if (chars[at] !== '?') return at;
  if (chars[at + 1] === ':') return at + 2;
  if (chars[at + 1] === '<' && chars[at + 2] !== '=' && chars[at + 2] !== '!') return chars.indexOf('>', at) + 1;
  if (chars[at + 1] === '<') throw new UnsupportedPattern('uses lookbehind');
  throw new UnsupportedPattern('uses inline modifiers');
}

function readQuantifier(chars: readonly string[], at: number): { min: number; max: number; next: number } | null {
  // Skips the mark of a lazy quantifier, which matches the same texts as a greedy one.
  const lazy = (next: number) => (chars[next] === '?' ? next + 1 : next);
  switch (chars[at]) {
    case '*':
      return { min: 0, max: Number.POSITIVE_INFINITY, next: lazy(at + 1) };
    case '+':
      return { min: 1, max: Number.POSITIVE_INFINITY, next: lazy(at + 1) };
    case '?':
      return { min: 0, max: 1, next: lazy(at + 1) };
    case '{': {
      const close = chars.indexOf('}', at);
      const [min, max] = chars
        .slice(at + 1, close)
        .join('')
        .split(',');
      const most = max === undefined ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max);
      return { min: Number(min), max: most, next: lazy(close + 1) };
    }
    default:
      return null;
  }
}

/** Reads a character class; `from` is the index after its `[`. Returns its code points, and the index after its `]`. */
function classSet(chars: readonly string[], from: number): [CodePoints, number] {
  let at = from;
  const negated = chars[at] === '^';
  if (negated) at++;
  const sets: CodePoints[] = [];
  const atom = (): CodePoints => {
    const char = chars[at++] ?? '';
    if (char !== '\\') return single(codePointOf(char));
    const [set, next] = escapeSet(chars, at, true);
    at = next;
    return set;
  };
  while (chars[at] !== ']') {
    const first = atom();
    if (chars[at] === '-' && chars[at + 1] !== ']') {
      at++;
      sets.push([...first.slice(0, 1), ...atom().slice(0, 1)]);
    } else sets.push(first);
  }
  const set = union(...sets);
  return [negated ? complement(set) : set, at + 1];
}

const SETS: ReadonlyMap<string, CodePoints> = new Map([
  ['d', DIGIT],
  ['D', complement(DIGIT)],
  ['w', WORD],
  ['W', complement(WORD)],
  ['s', SPACE],
  ['S', complement(SPACE)],
  ['t', single(9)],
  ['n', single(10)],
  ['v', single(11)],
  ['f', single(12)],
  ['r', single(13)],
  ['0', single(0)],
]);

/** Reads an escape; `at` is the index after its backslash. Returns its code points, and the index after it. */
function escapeSet(chars: readonly string[], at: number, inClass = false): [CodePoints, number] {
  const char = chars[at] ?? '';
  if (char === 'b' && inClass) return [single(8), at + 1];
  if (char === 'b' || char === 'B') throw new UnsupportedPattern('uses a word boundary (\\b or \\B)');
  if (char === 'k' || (char >= '1' && char <= '9')) throw new UnsupportedPattern('refers back to a group');
  const named = SETS.get(char);
  if (named) return [named, at + 1];
  if (char === 'c') return [single(codePointOf(chars[at + 1] ?? '') % 32), at + 2];
  if (char === 'x') return [single(hex(chars, at + 1, at + 3)), at + 3];
  if (char === 'p' || char === 'P') {
    const close = chars.indexOf('}', at);
    const set = unicodeProperty(chars.slice(at + 2, close).join(''));
    return [char === 'p' ? set : intersection(complement(set), ALL), close + 1];
  }
  if (char === 'u') {
    if (chars[at + 1] === '{') {
      const close = chars.indexOf('}', at);
      return [single(hex(chars, at + 2, close)), close + 1];
    }
    const unit = hex(chars, at + 1, at + 5);
    if (unit >= 0xd8_00 && unit <= 0xdb_ff && chars[at + 5] === '\\' && chars[at + 6] === 'u') {
      const low = hex(chars, at + 7, at + 11);
      if (low >= 0xdc_00 && low <= 0xdf_ff)
        return [single((unit - 0xd8_00) * 0x4_00 + (low - 0xdc_00) + 0x1_00_00), at + 11];
    }
    return [single(unit), at + 5];
  }
  return [single(codePointOf(char)), at + 1];
}

function hex(chars: readonly string[], from: number, to: number): number {
  return Number.parseInt(chars.slice(from, to).join(''), 16);
}
