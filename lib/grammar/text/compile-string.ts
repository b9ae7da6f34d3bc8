import { Fuel, TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { FORMATS, type Format } from '../schema/keywords.ts';
import { combine } from './combine.ts';
import type { Dfa } from './dfa.ts';
import { FORMAT_RULES } from './formats.ts';
import { parsePattern, strictPattern } from './pattern.ts';
import { searchDfa } from './search.ts';
import { StringLanguage } from './string-language.ts';

/**
 * Describes a schema's rules for a string: bounds on its length in code points (`max` may be Infinity), and patterns
 * and formats that must all match.
 */
export interface StringRules {
  min: number;
  max: number;
  patterns: readonly string[];
  formats: readonly Format[];
}

const formatLanguages = new Map<string, Dfa>();
const wholeFormats = new Map<string, StringLanguage>();

/**
 * Returns the automaton of a format, built once and cached.
 *
 * @param side `generates`: it accepts the texts that are generated; `accepts`: at least all valid ones (`FORMAT_RULES`)
 */
export function formatDfa(format: Format, side: 'generates' | 'accepts'): Dfa {
  const key = `${side} ${format}`;
  let dfa = formatLanguages.get(key);
  if (!dfa) {
    if (!FORMATS.includes(format)) throw new Error(`no such format: ${format}`);
    const rules = FORMAT_RULES[format];
    const fuel = new Fuel();
    const parts = side === 'accepts' ? [rules.accepts] : rules.generates;
    dfa = parts.map((pattern) => parsedDfa(pattern, fuel)).reduce((a, b) => combine(a, b, 'and', fuel));
    formatLanguages.set(key, dfa);
  }
  return dfa;
}

/** Cost of finding the code points of a `\p{...}`, in steps of `Fuel`. */
const PROPERTY_STEPS = 60_000;

/**
 * Returns the automaton of the texts in which a pattern matches.
 *
 * @throws SyntaxError if the pattern is not a valid regular expression with the `u` flag
 * @throws UnsupportedPattern if no automaton can enforce it
 * @throws TooLarge if it is too long, or needs too many states or steps
 */
export function patternDfa(pattern: string, fuel: Fuel): Dfa {
  if (pattern.length > LIMITS.patternLength) throw new TooLarge(`is longer than ${LIMITS.patternLength} characters`);
  const strict = strictPattern(pattern);
  new RegExp(strict, 'u');
  // Spent even if the code points are cached: whether a schema is accepted must not depend on earlier requests.
  fuel.spend(PROPERTY_STEPS * new Set(strict.match(/\\p\{[^}]*\}/gi)).size);
  return parsedDfa(strict, fuel);
}

function parsedDfa(pattern: string, fuel: Fuel): Dfa {
  return searchDfa(parsePattern(pattern), fuel);
}

/**
 * Returns the language of the texts that satisfy all rules.
 *
 * @param side `generates`: the texts that are generated; `accepts`: all valid texts and, if there is a format, also
 *   some invalid ones
 * @param ofPattern returns the automaton of a pattern, such as a cached one
 * @throws TooLarge if the language needs too many states or steps; also what `ofPattern` throws
 */
export function stringLanguage(
  rules: StringRules,
  side: 'generates' | 'accepts',
  fuel: Fuel,
  ofPattern: (pattern: string) => Dfa = (pattern) => patternDfa(pattern, fuel),
): StringLanguage {
  const [format, ...more] = rules.formats;
  if (format && more.length === 0 && rules.patterns.length === 0 && rules.min === 0 && rules.max === Infinity) {
    return wholeFormat(format, side);
  }
  const parts = [...rules.patterns.map(ofPattern), ...rules.formats.map((format) => formatDfa(format, side))];
  const dfa = parts.length === 0 ? null : parts.reduce((a, b) => combine(a, b, 'and', fuel));
  // zod's patterns of times have no offset, which the format requires. The pattern then says what the format means.
  if (
    dfa?.states === 0 &&
    format &&
    rules.patterns.length > 0 &&
    rules.formats.every((one) => one === 'time' || one === 'date-time')
  ) {
    return stringLanguage({ ...rules, formats: [] }, side, fuel, ofPattern);
  }
  return new StringLanguage(dfa, rules.min, longest(rules, side), fuel);
}

/** Returns the greatest length of the texts that satisfy all rules. */
function longest({ max, formats }: StringRules, side: 'generates' | 'accepts'): number {
  if (side === 'accepts') return max;
  return Math.min(max, ...formats.map((format) => FORMAT_RULES[format].longest ?? Number.POSITIVE_INFINITY));
}

/** Returns the language of a format without other rules. All schemas share it, and with it its token masks. */
function wholeFormat(format: Format, side: 'generates' | 'accepts'): StringLanguage {
  const key = `${side} ${format}`;
  let language = wholeFormats.get(key);
  if (!language) {
    const rules = { min: 0, max: Number.POSITIVE_INFINITY, patterns: [], formats: [format] };
    language = new StringLanguage(formatDfa(format, side), 0, longest(rules, side), new Fuel());
    wholeFormats.set(key, language);
  }
  return language;
}
