import { type Command, InvalidArgumentError, Option } from 'commander';
import { SERVER_FLAGS, type ServerFlags, type SettingName } from '../config.ts';

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

/** Returns an option parser for a number from 0 to `most`, which throws `InvalidArgumentError` for any other text. */
function numberTo(most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value >= 0 && value <= most) return value;
    throw new InvalidArgumentError(`Use a number from 0 to ${most}.`);
  };
}

export const temperatureFlag = numberTo(2);
/** Parses a probability. */
export const share = numberTo(1);

/** Returns the values of an option that may be repeated: `all` earlier ones, then `one`. */
export function repeated(one: string, all: string[] | undefined): string[] {
  return [...(all ?? []), one];
}

/** Returns the values as `repeated` does. Throws `InvalidArgumentError` if `all` already has `one`. */
export function distinctFlag(one: string, all: string[] | undefined): string[] {
  if (all?.includes(one)) throw new InvalidArgumentError('It is given twice.');
  return repeated(one, all);
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

/**
 * Returns a flag of the server as an option, for `assay serve` and for other commands that have it. Commander shows its
 * variable and default; `serverConfig` reads them, because not every command that needs them has the flag.
 */
export function serverOption(name: SettingName): Option {
  const { flag, help, env, default: usual, choices } = SERVER_FLAGS[name];
  const option = new Option(flag, help);
  if (choices) option.choices(choices);
  if (usual !== undefined) option.default(usual, usual);
  // An empty variable counts as not set.
  return env !== undefined && process.env[env] !== '' ? option.env(env) : option;
}

/** Returns the flags that were given, without the values that commander took from variables and defaults. */
export function givenServerFlags(command: Command): ServerFlags {
  const given = Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli');
  return Object.fromEntries(given);
}

/** Adds the flags `--home` and `--json` of a command that needs no server, and returns it. */
export function localFlags(command: Command): Command {
  return command.addOption(serverOption('home')).option('--json', 'print the result as JSON');
}
