import * as v from 'valibot';
import { LabelChoiceAnswer } from '../../../lib/schema/systemone-response.ts';
import { UsageError } from '../usage-error.ts';
import { asDataUrls, type MediaFields } from './read-media.ts';
import type { Connection } from './request.ts';
import { screen, shown } from './screen.ts';

/** Describes the flag `--probabilities` of `assay decide` and the flags that need it. */
export interface ProbabilityFlags {
  probabilities?: boolean;
  orders?: number;
  abstainBelow?: number;
}

interface AskedChoice {
  question: string;
  context: string;
  media: MediaFields;
  options: readonly string[];
  instruction: string | undefined;
}

const Answered = v.object({ answers: v.object({ decision: LabelChoiceAnswer }) });

/**
 * Throws `UsageError` if a flag has no effect, either with `--probabilities` or without it, or if `--probabilities` has
 * no options to score.
 */
export function checkProbabilityFlags(
  flags: ProbabilityFlags & { temperature?: number; maxOutputTokens?: number; language?: string },
  options: readonly string[],
): void {
  const { probabilities, orders, abstainBelow, temperature, maxOutputTokens, language } = flags;
  if (!probabilities) {
    if (orders === undefined && abstainBelow === undefined) return;
    throw new UsageError('--orders and --abstain-below need --probabilities: add that flag.');
  }
  if (options.length === 0)
    throw new UsageError('--probabilities needs options: give one with --option for each answer.');
  const unused = { '--temperature': temperature, '--max-output-tokens': maxOutputTokens, '--language': language };
  const [flag] = Object.entries(unused).find(([, value]) => value !== undefined) ?? [];
  if (flag)
    throw new UsageError(
      `${flag} changes nothing with --probabilities, which scores all options and generates no text. Remove it.`,
    );
}

/**
 * Asks the server for the probability of each option. Returns the parsed body of the response, in System One's format.
 */
export async function askProbabilities(
  connection: Connection,
  model: string,
  { question, context, media, options, instruction }: AskedChoice,
  { orders, abstainBelow }: ProbabilityFlags,
): Promise<unknown> {
  const instructions = instruction === undefined ? question : `${question}\n${instruction}`;
  const body = {
    model,
    state: context,
    ...asDataUrls(media),
    questions: { decision: { type: 'choice', instructions, criteria: options } },
    ...(orders === undefined ? {} : { orders }),
    ...(abstainBelow === undefined ? {} : { abstain_below: abstainBelow }),
  };
  return (await connection.request('/v1/systemone', { body })).json();
}

/**
 * Prints the chosen option and a bar for each option, or with `json` the whole answer as JSON. Returns the chosen
 * option; null if the server abstained.
 */
export function showProbabilities(
  answer: unknown,
  options: readonly string[],
  json: boolean | undefined,
): string | null {
  const { choice, probabilities, x_abstained: abstained } = v.parse(Answered, answer).answers.decision;
  if (json) screen.json(answer);
  else {
    if (!abstained) screen.line(shown(choice));
    for (const line of bars(options.map((option) => [shown(option), probabilities[option] ?? 0]))) screen.line(line);
    if (abstained) screen.note('Abstained: no option is probable enough (see --abstain-below).');
  }
  return abstained ? null : choice;
}

/** Length of the longest bar, in characters. */
const CELLS = 24;
/** Characters that fill 0 to 7 eighths of a character cell. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** Returns a line for each label, in aligned columns: the label, a bar of at most `CELLS` characters, a percentage. */
export function bars(probabilities: readonly (readonly [label: string, probability: number])[]): string[] {
  const width = Math.max(...probabilities.map(([label]) => label.length));
  return probabilities.map(([label, probability]) => {
    const percent = (100 * probability).toFixed(1).padStart(5);
    return `${label.padEnd(width)}  ${bar(probability).padEnd(CELLS)}  ${percent}%`;
  });
}

function bar(probability: number): string {
  const eighths = Math.round(probability * CELLS * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
}
