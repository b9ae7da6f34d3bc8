import { TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { atScale, ceilTo, decimal, lcm, power } from './decimal.ts';

/**
 * Describes a schema's rules for a number. `minimum` and `maximum` are inclusive, `above` and `below` are exclusive.
 * The number must be a multiple of every item of `multipleOf`, and whole if `integer` is true.
 */
export interface NumberRules {
  integer: boolean;
  minimum?: number;
  maximum?: number;
  above?: number;
  below?: number;
  multipleOf: readonly number[];
}

/**
 * Maximum number of digits in a number with a fraction. Up to 15 digits, different decimals are different doubles (IEEE
 * 754).
 */
const DIGITS = 15;
/** The largest integer that is exact everywhere (I-JSON, RFC 7493, section 2.2). */
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER);
/**
 * Maximum number of multiples that are tried to find one outside all exclusions. An excluded range is skipped in one
 * step.
 */
const TRIES = 64;

/** Maximum number of steps of `words`. */
const WORD_STEPS = 4_000;

/**
 * Describes a set of numbers, all counted in the same unit: the multiples of `step` from `from` to `to`, where null
 * means no bound.
 */
interface Progression {
  from: bigint | null;
  to: bigint | null;
  step: bigint;
}

/**
 * Represents a set of allowed numbers, written without exponent, without `-0`, and with at most as many digits as a
 * double distinguishes. A position in a number is its text so far; `fits` tells whether that text can still become an
 * allowed number. The arithmetic is exact.
 */
export class NumberLanguage {
  readonly rules: NumberRules;
  /** Decimal places of the unit in which all numbers are counted: 10 to the power of `-scale`. */
  readonly #scale: number;
  readonly #all: Progression;
  /** Maximum number of digits after the point. */
  readonly #places: number;
  readonly #except: readonly Progression[];
  /** Exclusions of a single value. */
  readonly #points: ReadonlySet<bigint>;
  readonly #known = new Map<string, boolean>();
  /** True if no number is allowed. */
  readonly empty: boolean;

  /**
   * @param except rules of numbers that are not allowed, because another branch of `oneOf` allows them
   * @param spend spends steps of the compile budget for finding out whether any number is allowed
   * @throws TooLarge if `except` has more than `LIMITS.numberExclusions` ranges; also what `spend` throws
   */
  constructor(rules: NumberRules, except: readonly NumberRules[] = [], spend: (steps: number) => void = () => {}) {
    this.rules = rules;
    const numbers = [rules, ...except].flatMap((r) => [r.minimum, r.maximum, r.above, r.below, ...r.multipleOf]);
    this.#scale = Math.max(DIGITS, ...numbers.map((n) => (n === undefined ? 0 : decimal(n).places)));
    this.#all = progression(rules, this.#scale);
    this.#plain = except.length === 0 && numbers.every((n) => n === undefined);
    const sets = except.map((r) => progression(r, this.#scale));
    this.#points = new Set(sets.flatMap(({ from, to }) => (from !== null && from === to ? [from] : [])));
    this.#except = sets.filter(({ from, to }) => from === null || to === null || from < to);
    if (this.#except.length > LIMITS.numberExclusions) {
      throw new TooLarge(`overlaps with more than ${LIMITS.numberExclusions} other branches of oneOf; use anyOf`);
    }
    const steps = rules.multipleOf.map((n) => decimal(n).places);
    // A multiple of a whole number needs no fraction; a multiple of 0.5 needs one digit.
    this.#places = rules.integer ? 0 : Math.min(DIGITS - 1, steps.length === 0 ? DIGITS - 1 : Math.max(...steps));
    this.#spend = spend;
    this.#spend(10 + ((this.#scale * numbers.length) >> 6));
    this.empty = !this.fits('');
    this.#spend = null;
  }

  /** Tells whether `text` is the beginning of an allowed number, or all of it. */
  fits(text: string): boolean {
    let known = this.#known.get(text);
    if (known === undefined) {
      known = this.#computeFits(text);
      if (this.#known.size > 10_000) this.#known.clear();
      this.#known.set(text, known);
    }
    return known;
  }

  /** Tells whether `text` is an allowed number. */
  accepts(text: string): boolean {
    if (!/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) || !this.fits(text)) return false;
    const { units, places } = decimal(text);
    if (units === 0n && text.startsWith('-')) return false;
    const value = atScale({ units, places }, this.#scale);
    return this.#within(value, value, 1n);
  }

  /** Yields the allowed numbers that begin with `text`. Ends after `WORD_STEPS` steps, so it may omit some. */
  *words(text = ''): Generator<string> {
    const open = [text];
    for (let steps = 0; steps < WORD_STEPS; steps++) {
      const next = open.pop();
      if (next === undefined) return;
      if (!this.fits(next)) continue;
      if (this.accepts(next)) yield next;
      for (const char of '.-9876543210') open.push(next + char);
    }
  }

  /** Counts the different allowed numbers, up to `most`. */
  count(most: number): number {
    const found = new Set<number>();
    for (const word of this.words()) {
      if (found.size >= most) break;
      found.add(Number(word));
    }
    return found.size;
  }

  /** Spends steps while the language is built; null afterwards. */
  #spend: ((steps: number) => void) | null = null;
  /** True if only the notation is bounded, not the value. */
  readonly #plain: boolean;

  #computeFits(text: string): boolean {
    if (text === '') return [...'0123456789-'].some((first) => this.fits(first));
    if (text === '-') return [...'0123456789'].some((first) => this.fits(`-${first}`));
    const match = /^(-?)(0|[1-9]\d*)(?:\.(\d*))?$/.exec(text);
    if (!match) return false;
    const [, sign, whole = '', fraction] = match;
    const tail = fraction?.length ?? 0;
    if (this.#plain) {
      const places = Math.max(0, Math.min(this.#places, DIGITS - whole.length));
      if (fraction !== undefined && places === 0) return false;
      const isZero = Number(`${whole}.${fraction ?? ''}`) === 0;
      // -0 is never written, so a digit above 0 must still come.
      return tail + (sign === '-' && isZero ? 1 : 0) <= places && Number(whole) <= Number.MAX_SAFE_INTEGER;
    }
    if (fraction !== undefined) {
      const places = Math.min(this.#places, DIGITS - whole.length);
      if (places < Math.max(1, tail)) return false;
      return this.#anyFrom(BigInt(whole + fraction), tail, places, sign === '-');
    }
    const most = whole === '0' ? 1 : 16;
    for (let digits = whole.length; digits <= most; digits++) {
      const first = BigInt(whole) * power(digits - whole.length);
      const last = first + power(digits - whole.length) - 1n;
      const places = Math.max(0, Math.min(this.#places, DIGITS - digits));
      if (this.#between(first, last, places, sign === '-')) return true;
    }
    return false;
  }

  /**
   * Tells whether an allowed number with at most `places` fraction digits begins with the digits of `units`, the last
   * `tail` of which come after the decimal point.
   */
  #anyFrom(units: bigint, tail: number, places: number, negative: boolean): boolean {
    const unit = power(this.#scale - tail);
    const step = power(this.#scale - places);
    return this.#mirrored(units * unit, (units + 1n) * unit - 1n, step, negative);
  }

  /**
   * Tells whether an allowed number has an integer part from `first` to `last` and at most `places` digits after the
   * point.
   */
  #between(first: bigint, last: bigint, places: number, negative: boolean): boolean {
    const one = power(this.#scale);
    const end = last > LARGEST ? LARGEST * one : (last + 1n) * one - 1n;
    return this.#mirrored(first * one, end, power(this.#scale - places), negative);
  }

  #mirrored(first: bigint, last: bigint, step: bigint, negative: boolean): boolean {
    if (!negative) return this.#within(first, last, step);
    return this.#within(-last, first === 0n ? -1n : -first, step);
  }

  /** Tells whether a multiple of `step` from `first` to `last` is allowed. */
  #within(first: bigint, last: bigint, step: bigint): boolean {
    const { from, to } = this.#all;
    const low = from !== null && from > first ? from : first;
    const high = to !== null && to < last ? to : last;
    const stride = lcm(this.#all.step, step);
    let value = ceilTo(low, stride);
    for (let tries = 0; value <= high && tries < TRIES; ) {
      this.#spend?.(1 + (this.#except.length >> 1));
      const set = this.#except.find((set) => holds(set, value));
      const isPoint = this.#points.has(value);
      if (!set && !isPoint) return true;
      // An excluded single number is met at most once, so it does not count as a try.
      if (!isPoint) tries++;
      if (!set || stride % set.step !== 0n) value += stride;
      else if (set.to === null) return false;
      else value = ceilTo(set.to + 1n, stride);
    }
    return false;
  }
}

function holds({ from, to, step }: Progression, value: bigint): boolean {
  return (from === null || value >= from) && (to === null || value <= to) && value % step === 0n;
}

function progression(rules: NumberRules, scale: number): Progression {
  const units = (n: number): bigint => atScale(decimal(n), scale);
  const lows = [
    ...(rules.minimum === undefined ? [] : [units(rules.minimum)]),
    ...(rules.above === undefined ? [] : [units(rules.above) + 1n]),
  ];
  const highs = [
    ...(rules.maximum === undefined ? [] : [units(rules.maximum)]),
    ...(rules.below === undefined ? [] : [units(rules.below) - 1n]),
  ];
  const steps = [...rules.multipleOf.map(units), ...(rules.integer ? [power(scale)] : [])];
  return {
    from: lows.length === 0 ? null : lows.reduce((a, b) => (a > b ? a : b)),
    to: highs.length === 0 ? null : highs.reduce((a, b) => (a < b ? a : b)),
    step: steps.reduce((a, b) => lcm(a, b), 1n),
  };
}

/**
 * Tells whether no number satisfies both rules. The check is exact, and includes numbers that the grammar cannot write.
 */
export function numbersAreDisjoint(a: NumberRules, b: NumberRules): boolean {
  const numbers = [a, b].flatMap((r) => [r.minimum, r.maximum, r.above, r.below, ...r.multipleOf]);
  // One decimal place more than any bound has, so there is a value between two different bounds.
  const scale = 1 + Math.max(0, ...numbers.map((n) => (n === undefined ? 0 : decimal(n).places)));
  const [p, q] = [progression(a, scale), progression(b, scale)];
  const low = p.from === null || (q.from !== null && q.from > p.from) ? q.from : p.from;
  const high = p.to === null || (q.to !== null && q.to < p.to) ? q.to : p.to;
  if (low === null || high === null) return false;
  return low > high || ceilTo(low, lcm(p.step, q.step)) > high;
}
