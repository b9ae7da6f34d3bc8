import { InvalidArgumentError } from 'commander';

/**
 * Returns an option parser for commander that returns a whole number from `least` to `most`, and throws
 * `InvalidArgumentError` for any other text.
 */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Use a whole number from ${least} to ${most}.`);
  };
}

export const promptLength = wholeNumber(16, 1_048_576);

/** Parses the value of `--temperature`, a number from 0 to 2. Throws `InvalidArgumentError` for any other value. */
export function temperatureFlag(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 2) return value;
  throw new InvalidArgumentError('Use a number from 0 to 2.');
}

/** Returns the values of an option that may be repeated: `all` earlier ones, then `one`. */
export function repeated(one: string, all: string[] | undefined): string[] {
  return [...(all ?? []), one];
}

/** Returns the values as `repeated` does. Throws `InvalidArgumentError` if `all` already has `one`. */
export function distinctFlag(one: string, all: string[] | undefined): string[] {
  if (all?.includes(one)) throw new InvalidArgumentError('It is given twice.');
  return repeated(one, all);
}

/** Parses a probability, a number from 0 to 1. Throws `InvalidArgumentError` for any other value. */
export function share(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('Use a number from 0 to 1.');
  return value;
}

/** Parses a number between 0 and 1. Throws `InvalidArgumentError` for any other value, 0 and 1 included. */
export function inside(text: string): number {
  const value = share(text);
  if (value > 0 && value < 1) return value;
  throw new InvalidArgumentError('Use a number between 0 and 1, such as 0.05.');
}

/**
 * Returns the text of an option that may be given once. Throws `InvalidArgumentError` if it was given before, because
 * one of the two texts would be ignored.
 */
export function once(text: string, earlier: string | undefined): string {
  if (earlier !== undefined) throw new InvalidArgumentError('It may be given only once.');
  return text;
}
