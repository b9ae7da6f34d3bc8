import * as v from 'valibot';
import { LabelChoiceAnswer } from '../../../lib/schema/systemone-response.ts';
import { UsageError } from '../usage-error.ts';
import { bars } from './bars.ts';
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
