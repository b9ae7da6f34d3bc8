import { Fuel, TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { combine } from './combine.ts';
import type { Dfa } from './dfa.ts';
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
  formats: readonly StringFormat[];
}

const formatLanguages = new Map<string, Dfa>();
const wholeFormats = new Map<string, StringLanguage>();

/**
 * Returns the automaton of a format, built once and cached.
 *
 * @param side `generates`: it accepts the texts that are generated; `accepts`: at least all valid ones (`FORMAT_RULES`)
 */
function formatDfa(format: StringFormat, side: 'generates' | 'accepts'): Dfa {
  const key = `${side} ${format}`;
  let dfa = formatLanguages.get(key);
  if (!dfa) {
    const rules: FormatRule = FORMAT_RULES[format];
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
  const rules: readonly FormatRule[] = formats.map((format) => FORMAT_RULES[format]);
  return Math.min(max, ...rules.map(({ longest = Number.POSITIVE_INFINITY }) => longest));
}

/** Returns the language of a format without other rules. All schemas share it, and with it its token masks. */
function wholeFormat(format: StringFormat, side: 'generates' | 'accepts'): StringLanguage {
  const key = `${side} ${format}`;
  let language = wholeFormats.get(key);
  if (!language) {
    const rules = { min: 0, max: Number.POSITIVE_INFINITY, patterns: [], formats: [format] };
    language = new StringLanguage(formatDfa(format, side), 0, longest(rules, side), new Fuel());
    wholeFormats.set(key, language);
  }
  return language;
}

const month = String.raw`(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])`;
// Not the year 0000, which Python's and .NET's dates lack.
const year = String.raw`(?:\d{3}[1-9]|\d{2}[1-9]0|\d[1-9]00|[1-9]000)`;
// Leap years of the Gregorian calendar: every fourth year, except the centuries that 400 does not divide.
const leap = '(?:0[48]|[2468][048]|[13579][26])';
const date = String.raw`(?:${year}-(?:${month})|(?:\d\d${leap}|${leap}00)-02-29)`;
const clock = String.raw`(?:[01]\d|2[0-3]):[0-5]\d`;
const localTime = String.raw`${clock}(?::[0-5]\d)?`;
const time = String.raw`${clock}:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]${clock})`;
// At most 63 characters, and no hyphens in both the third and the fourth place, where `xn--` marks an encoded label.
const label = label63('[A-Za-z0-9]', '[A-Za-z0-9-]');
const byte = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const ipv4 = String.raw`${byte}(?:\.${byte}){3}`;
const atom = "[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+";
const unreserved = "[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}";

function label63(end: string, inner: string): string {
  return `${end}(?:${end}|${inner}${end}|${inner}{2}${end}|${inner}(?:${end}${inner}|-${end})${inner}{0,58}${end})?`;
}

interface FormatRule {
  /** Patterns that all hold for the generated texts: a subset of the format that every validator accepts. */
  generates: readonly string[];
  /** Greatest length of the generated texts, if the format has one. */
  longest?: number;
  /**
   * Pattern that accepts at least every text of the format. In `oneOf`, two formats count as overlapping if these
   * patterns overlap.
   */
  accepts: string;
}

const email: FormatRule = {
  generates: [String.raw`^${atom}(?:\.${atom})*@${label}(?:\.${label})+$`, '^[^@]{1,64}@'],
  longest: 254,
  accepts: '@',
};
const hostname: FormatRule = {
  generates: [String.raw`^${label}(?:\.${label})*$`],
  longest: 253,
  accepts: String.raw`^[^@:/\s]{1,253}$`,
};
const scheme = '[A-Za-z][A-Za-z0-9+.-]{0,19}:';
const uri = `^${scheme}${uriAfterScheme()}$`;
const uriReference = `^(?:${scheme}${uriAfterScheme()}|/?(?:${unreserved}|@)(?:${unreserved}|[@/])*)$`;
// Letters, escapes, classes and quantifiers, without groups: valid in every dialect.
const regex = String.raw`^\^?(?:(?:[A-Za-z0-9 _@%=:;,"'<>]|\.|\\[dDwWsS.*+?()|^$\[\]{}\\]|\[\^?(?:a-z|A-Z|0-9|\\[dws]|[A-Za-z0-9_])+\])[*+?]?)*\$?$`;
const pointer = '(?:/(?:[^~/]|~[01])*)*';

/**
 * The formats of JSON Schema 2020-12 validation, section 7.3. What `generates` matches:
 *
 * - date, time, date-time: RFC 3339, section 5.6, with days that exist. No leap second, capital `T` and `Z`.
 * - local-time, local-date-time: Assay's own; without a zone, HH:MM or HH:MM:SS, after a day that exists and `T`.
 * - duration: RFC 3339, appendix A, numbers of at most 6 digits.
 * - email: a dot-atom (RFC 5322) of at most 64 characters at a host name with a dot.
 * - hostname: RFC 1123, without encoded labels (RFC 5890).
 * - ipv4: RFC 2673, section 3.2. ipv6: RFC 4291, section 2.2. uuid: RFC 9562.
 * - uri: RFC 3986, with a scheme. A host is an address in brackets, or labels of letters, digits, `_` and hyphens.
 *   uri-reference: such a URI, or a path.
 * - idn-email, idn-hostname, iri, iri-reference: what the formats without international characters generate.
 * - regex: a pattern without groups.
 * - uuid4: a UUID of version 4, as Pydantic names it. json-pointer: RFC 6901.
 */
const FORMAT_RULES = {
  date: { generates: [`^${date}$`], accepts: String.raw`^\d{4}-\d\d-\d\d$` },
  time: { generates: [`^${time}$`], accepts: String.raw`^\d\d:` },
  'date-time': { generates: [`^${date}T${time}$`], accepts: String.raw`^\d{4}-\d\d-\d\d[Tt\s]\d\d:` },
  'local-time': { generates: [`^${localTime}$`], accepts: String.raw`^\d\d:` },
  'local-date-time': { generates: [`^${date}T${localTime}$`], accepts: String.raw`^\d{4}-\d\d-\d\dT\d\d:` },
  duration: { generates: [duration()], accepts: '^P' },
  email,
  'idn-email': email,
  hostname,
  'idn-hostname': { ...hostname, accepts: '' },
  ipv4: { generates: [`^${ipv4}$`], accepts: `^${ipv4}$` },
  ipv6: { generates: [`^${ipv6()}$`], accepts: ':.*:' },
  uri: { generates: [uri], accepts: '^[A-Za-z][A-Za-z0-9+.-]*:' },
  'uri-reference': { generates: [uriReference], accepts: '' },
  iri: { generates: [uri], accepts: ':' },
  'iri-reference': { generates: [uriReference], accepts: '' },
  'json-pointer': { generates: [`^${pointer}$`], accepts: '^(?:/|$)' },
  'relative-json-pointer': { generates: [String.raw`^(?:0|[1-9]\d{0,3})(?:#|${pointer})$`], accepts: String.raw`^\d` },
  regex: { generates: [regex], accepts: '' },
  uuid4: {
    generates: ['^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'],
    accepts: '',
  },
  uuid: {
    generates: ['^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$'],
    accepts: '^(?:urn:uuid:)?[0-9A-Fa-f]{8}-',
  },
} as const satisfies { readonly [name: string]: FormatRule };

/**
 * Represents a value of `format` that is enforced for strings. All others are annotations, as JSON Schema 2020-12 has
 * it; the names of number types also bound a number (`NUMBER_FORMATS`).
 */
export type StringFormat = keyof typeof FORMAT_RULES;

/** Tells whether a value of `format` is enforced for strings. */
export function isStringFormat(name: unknown): name is StringFormat {
  return typeof name === 'string' && Object.hasOwn(FORMAT_RULES, name);
}

function duration(): string {
  const n = String.raw`\d{1,6}`;
  const clock = `(?:${n}H(?:${n}M(?:${n}S)?)?|${n}M(?:${n}S)?|${n}S)`;
  const days = `(?:${n}Y(?:${n}M(?:${n}D)?)?|${n}M(?:${n}D)?|${n}D)`;
  return `^P(?:${days}(?:T${clock})?|T${clock}|${n}W)$`;
}

/**
 * Returns the pattern of an IPv6 address: eight groups, the last two perhaps as an IPv4 address, or fewer with one `::`
 * that stands for at least two.
 */
function ipv6(): string {
  const group = '[0-9A-Fa-f]{1,4}';
  const forms = [`(?:${group}:){7}${group}`, '::', `::${group}(?::${group}){0,5}`];
  forms.push(`(?:${group}:){6}${ipv4}`, `::(?:${group}:){0,4}${ipv4}`);
  for (let before = 1; before <= 6; before++) {
    const after = 6 - before;
    const left = `${group}(?::${group}){${before - 1}}`;
    forms.push(after === 0 ? `${left}::` : `${left}::(?:${group}(?::${group}){0,${after - 1}})?`);
    if (after >= 2) forms.push(`${left}::(?:${group}:){0,${after - 2}}${ipv4}`);
  }
  return `(?:${forms.join('|')})`;
}

function uriAfterScheme(): string {
  const path = `(?:${unreserved}|[:@/])`;
  const rest = String.raw`(?:\?(?:${unreserved}|[:@/?])*)?(?:#(?:${unreserved}|[:@/?])*)?`;
  const name = '[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?';
  const host = String.raw`(?:${name}(?:\.${name})*|\[${ipv6()}\])`;
  const authority = String.raw`//(?:(?:${unreserved}|:)*@)?${host}(?::\d{1,5})?`;
  return `(?:${authority}(?:/${path}*)?|///${path}*|/?(?:${unreserved}|[:@])${path}*)${rest}`;
}
