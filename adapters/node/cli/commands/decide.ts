import type { Command } from 'commander';
import * as v from 'valibot';
import { LabelChoiceAnswer } from '../../../../lib/schema/systemone-response.ts';
import { DecideResponse } from '../../../../lib/schema/task-response.ts';
import { COMMAND } from '../../command.ts';
import { UsageError } from '../../usage-error.ts';
import { type AskFlags, askFlags, sharedFields, warnIfCut, windowsField, withModel } from '../ask.ts';
import { EXIT } from '../exit-code.ts';
import { distinctFlag, once, share, wholeNumber } from '../parse-flags.ts';
import { asDataUrls, type InputFlags, inputFlags, type MediaFields, readContext, readMedia } from '../read-input.ts';
import type { Connection } from '../request.ts';
import { screen, shown } from '../screen.ts';

type DecideFlags = AskFlags &
  InputFlags &
  ProbabilityFlags & { option?: string[]; instruction?: string; expect?: string };

/**
 * Default limits of output tokens: `options` if the flags name options, `free` for an answer in the model's own words.
 */
const TOKENS = { options: 32, free: 128 };

/** Adds the command `assay decide`. */
export function addDecide(program: Command): void {
  askFlags(
    inputFlags(
      program
        .command('decide')
        .description('Answer one question about a text, an image or a recording.')
        .argument('<question>', 'what to decide')
        .option('-o, --option <answer>', 'an allowed answer; repeat the flag for each', distinctFlag),
    )
      .option('--instruction <text>', 'extra guidance, such as "Give a reason."', once)
      .option('--expect <answer>', 'exit with 0 for this answer and with 1 for any other', once)
      .option('-p, --probabilities', 'show the probability of each option')
      .option(
        '--orders <number>',
        'with --probabilities: number of orders of the options to average over',
        wholeNumber(1, 8),
      )
      .option(
        '--abstain-below <probability>',
        'with --probabilities: abstain if no option is at least this probable',
        share,
      ),
  )
    .addHelpText('after', DECIDE_HELP)
    .action(async (question: string, flags: DecideFlags) => {
      const options = flags.option ?? [];
      if (flags.expect !== undefined && options.length > 0 && !options.includes(flags.expect)) {
        throw new UsageError(`--expect ${flags.expect} is not one of the options. Use one of: ${options.join(', ')}.`);
      }
      checkProbabilityFlags(flags, options);
      const context = await readContext(flags, `${COMMAND} decide "Is this urgent?"`);
      const media = await readMedia(flags);
      if (flags.probabilities) {
        const asked = { question, context, media, options, instruction: flags.instruction };
        const ask = (connection: Connection, model: string) => askProbabilities(connection, model, asked, flags);
        const answer = await withModel(flags, ask, true);
        const choice = showProbabilities(answer, options, flags.json);
        if (flags.expect !== undefined && choice !== flags.expect) process.exitCode = EXIT.no;
        return;
      }
      const choosing = options.length > 0 && flags.instruction === undefined;
      const answer = await withModel(
        flags,
        async (connection, model) => {
          const body = {
            model,
            question,
            context,
            ...media,
            ...sharedFields(flags, options.length > 0 ? TOKENS.options : TOKENS.free),
            ...(options.length > 0 ? { options } : {}),
            ...(flags.instruction === undefined ? {} : { instruction: flags.instruction }),
          };
          return (await connection.request('/decide', { body })).json();
        },
        choosing,
      );
      const response = v.parse(DecideResponse, answer);
      if (flags.json) screen.json(answer);
      else {
        screen.line(shown(response.value));
        if (response.result.reason) screen.note(shown(response.result.reason, process.stderr));
      }
      warnIfCut(response);
      if (flags.expect !== undefined && response.value !== flags.expect) process.exitCode = EXIT.no;
    });
}

const DECIDE_HELP = `
With options, the answer is always one of them. Without options, it is a few words of the model's own.

Examples:
  $ assay decide "Is this urgent?" --option yes --option no < mail.txt
  $ assay decide "Which team?" -o billing -o support -o sales --file mail.txt
  $ assay decide "Which team?" -o billing -o support -o sales --probabilities --abstain-below 0.6 --file mail.txt
  $ assay decide --image receipt.jpg "Is this a receipt?" -o yes -o no
  $ assay decide --audio call.wav "Is the caller angry?" -o yes -o no
  $ git diff | assay decide "Does this change the interface?" -o yes -o no
  $ if assay decide "Is this spam?" -o yes -o no --expect yes < mail.txt; then mv mail.txt spam/; fi`;

/** Describes the flag `--probabilities` of `assay decide` and the flags that need it. */
interface ProbabilityFlags {
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
function checkProbabilityFlags(
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
async function askProbabilities(
  connection: Connection,
  model: string,
  { question, context, media, options, instruction }: AskedChoice,
  { orders, abstainBelow, ...flags }: ProbabilityFlags & AskFlags,
): Promise<unknown> {
  const instructions = instruction === undefined ? question : `${question}\n${instruction}`;
  const body = {
    model,
    state: context,
    ...asDataUrls(media),
    questions: { decision: { type: 'choice', instructions, criteria: options } },
    ...windowsField(flags),
    ...(orders === undefined ? {} : { orders }),
    ...(abstainBelow === undefined ? {} : { abstain_below: abstainBelow }),
  };
  return (await connection.request('/v1/systemone', { body })).json();
}

/**
 * Prints the chosen option and a bar for each option, or with `json` the whole answer as JSON. Returns the chosen
 * option; null if the server abstained.
 */
function showProbabilities(answer: unknown, options: readonly string[], json: boolean | undefined): string | null {
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
