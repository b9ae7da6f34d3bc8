/** Represents an exact decimal: `units / 10^places`. */
export interface Decimal {
  units: bigint;
  /** Digits after the point, at least 0. */
  places: number;
}

/**
 * Converts a number, or the text of one, to the decimal that it is written as: 0.1 is exactly one tenth, not the
 * nearest binary fraction.
 */
export function decimal(value: number | string): Decimal {
  // The casts are safe, because `split` returns at least one part.
  const [mantissa, exponent] = String(value).split('e') as [string, string?];
  const [whole, fraction = ''] = mantissa.split('.') as [string, string?];
  const places = fraction.length - Number(exponent ?? 0);
  const units = BigInt(whole + fraction);
  // The integer part of -0.5 is -0. Its sign survives because BigInt('-05') is parsed as a whole.
  return reduce(places < 0 ? { units: units * power(-places), places: 0 } : { units, places });
}

const powers: bigint[] = [];

/** Returns 10 to the power of a small integer from 0, cached. */
export function power(exponent: number): bigint {
  powers[exponent] ??= 10n ** BigInt(exponent);
  return powers[exponent];
}

/** Removes the zeros at the end of the fraction. */
function reduce({ units, places }: Decimal): Decimal {
  let rest = units;
  let left = places;
  while (left > 0 && rest % 10n === 0n) {
    rest /= 10n;
    left--;
  }
  return { units: rest, places: left };
}

/**
 * Returns the decimal times 10 to the power of `scale`, as an integer. `scale` must be at least the decimal's `places`.
 */
export function atScale({ units, places }: Decimal, scale: number): bigint {
  return units * power(scale - places);
}

/** Returns the least common multiple of two integers above 0. */
export function lcm(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** Returns the smallest multiple of `step` that is at least `value`; `step` must be above 0. */
export function ceilTo(value: bigint, step: bigint): bigint {
  const rest = value % step;
  return rest === 0n ? value : value - rest + (value > 0n ? step : 0n);
}
