import { type Command, Option } from 'commander';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { LANGUAGES } from '../../../lib/schema/language.ts';
import { ModelList } from '../../../lib/schema/model-list.ts';
import { Health } from '../../../lib/schema/status.ts';
import { COMMAND } from '../command.ts';
import { UsageError } from '../usage-error.ts';
import { loadOnServer } from './commands/load.ts';
import { type ConnectionFlags, connect, connectionFlags } from './connection.ts';
import { temperatureFlag, wholeNumber } from './parse-flags.ts';
import type { Connection } from './request.ts';
import { isWatched, screen, shown, warnOfPrecision } from './screen.ts';

/** Describes the flags of all commands that send a prompt to the model. */
export interface ModelFlags extends ConnectionFlags {
  model?: string;
  temperature?: number;
  maxOutputTokens?: number;
}

/** Describes the flags of the commands that send tasks to the decision service. */
export interface AskFlags extends ModelFlags {
  language?: string;
  windows?: true | number;
}

const GROUP = 'Model:';

/**
 * Adds the flags of `ModelFlags` to a command and returns it. Call it after adding the command's own flags, so that the
 * help lists those first. `defaultText` describes the default temperature in the help text.
 */
export function modelFlags(command: Command, defaultText: string): Command {
  const add = (flags: string, description: string, parse?: (text: string) => unknown) => {
    const option = new Option(flags, description).helpGroup(GROUP);
    command.addOption(parse ? option.argParser(parse) : option);
  };
  add('--model <id>', 'model to ask (default: the loaded model of the server)');
  add('--temperature <number>', `0 (always the most probable answer) to 2 (default: ${defaultText})`, temperatureFlag);
  add('--max-output-tokens <number>', 'most tokens of the answer, 1 to 4096', wholeNumber(1, 4096));
  return connectionFlags(command);
}

/**
 * Adds the flags of `AskFlags` to a command and returns it. Call it after adding the command's own flags, so that the
 * help lists those first.
 */
export function askFlags(command: Command): Command {
  const language = new Option('--language <code>', 'language of the answer').choices(LANGUAGES).helpGroup(GROUP);
  const windows = new Option('--windows [tokens]', 'read a text that is too long in parts, of about this many tokens')
    .argParser(wholeNumber(32, 1_048_576))
    .helpGroup(GROUP);
  return modelFlags(command.addOption(language).addOption(windows), '0');
}

/**
 * Returns the request fields that the flags set. Without `--max-output-tokens`, `max_output_tokens` is `defaultTokens`.
 */
export function sharedFields(flags: AskFlags, defaultTokens: number): Record<string, unknown> {
  return {
    max_output_tokens: flags.maxOutputTokens ?? defaultTokens,
    ...(flags.temperature === undefined ? {} : { temperature: flags.temperature }),
    ...(flags.language === undefined ? {} : { target_language: flags.language }),
    ...windowsField(flags),
  };
}

/** Returns the request field that `--windows` sets. */
export function windowsField({ windows }: AskFlags): { windows?: { size?: number } } {
  if (windows === undefined) return {};
  return { windows: windows === true ? {} : { size: windows } };
}

/**
 * Opens a connection, finds the model to ask (`modelOf`), passes both to `work`, and returns its result. Closes the
 * connection when `work` ends. If no server runs, the model is loaded in this process for this one call. Throws the
 * errors of `connect`, `modelOf` and `work`.
 *
 * @param choosing see `modelOf`
 */
export async function withModel<T>(
  flags: ModelFlags,
  work: (connection: Connection, model: string) => Promise<T>,
  choosing = false,
): Promise<T> {
  const connection = await connect(flags, { alone: true });
  try {
    return await work(connection, await modelOf(connection, flags, choosing));
  } finally {
    await connection.close();
  }
}

/**
 * Returns the id of the model to ask: the one that `--model` names, or else the one that the server has loaded, or the
 * only one of an edge. Of several that are loaded, the last one that generates text, or with `choosing`, the last one
 * that was made for decisions.
 *
 * Without a server, first loads a model in this process: `--model`, else `ASSAY_MODEL`, else
 * `assay/starter`.
 *
 * @param choosing true if the request only has questions with options
 * @throws AssayError `model_not_loaded` if the server has no model loaded and the flag names none; any error of the
 *   load in this process
 * @throws UsageError if the flag names no model and the edge has none or several
 * @throws NoServerError if the connection breaks
 */
export async function modelOf(connection: Connection, flags: ModelFlags, choosing = false): Promise<string> {
  if (connection.url === null) {
    const [first] = (process.env.ASSAY_MODEL || 'assay/starter').split(/[\s,]+/u);
    const model = flags.model ?? first ?? '';
    if (isWatched())
      screen.note(
        `No server is running, so this call loads ${model} itself. For faster calls, start a server: ${COMMAND} serve`,
      );
    warnOfPrecision(await loadOnServer(connection, model, { json: !isWatched() }));
    return model;
  }
  if (flags.model !== undefined) return flags.model;
  const health = v.safeParse(Health, await (await connection.request('/health')).json());
  if (!health.success) return onlyModelOf(connection);
  const { state, active_model: model, reason, models = [] } = health.output;
  if (models.length > 1) {
    const { data } = v.parse(ModelList, await (await connection.request('/v1/models')).json());
    const fits = (id: string) => data.some((one) => one.id === id && one.capabilities?.chat === !choosing);
    const found = models.find((one) => one.state === 'loaded' && fits(one.id));
    if (found) return found.id;
  }
  if (state === 'loaded' && model !== 'none') return model;
  const why = reason ? ` ${reason}` : '';
  throw new AssayError(
    'model_not_loaded',
    `The server has no model loaded (state: ${state}).${why} Load one: ${COMMAND} load assay/starter`,
  );
}

/** Returns the id of the only model that an edge lists. Throws `UsageError` if it lists none or several. */
async function onlyModelOf(connection: Connection): Promise<string> {
  const { data } = v.parse(ModelList, await (await connection.request('/v1/models')).json());
  const [model, ...others] = data.map(({ id }) => id);
  if (model !== undefined && others.length === 0) return model;
  const named = model === undefined ? '' : ` It has ${[model, ...others].join(', ')}.`;
  throw new UsageError(`${connection.url} has no single model to ask. Name one with --model.${named}`);
}

/**
 * Warns on standard error if `response` was cut (`finish_reason` is `length`): at the token limit, at the end of the
 * context, or because a chat's answer repeated itself. `cut` is the value of the response header that names the cut
 * tasks, if the request had several.
 */
export function warnIfCut(
  response: { choices: readonly { finish_reason: string | null }[] },
  cut?: string | null,
): void {
  if (response.choices[0]?.finish_reason !== 'length') return;
  const what = cut ? `These answers were cut: ${shown(cut, process.stderr)}.` : 'The answer was cut.';
  screen.note(
    `${what} Raise the token limit with --max-output-tokens. If that does not help, the input fills the model's context, or the answer repeats itself.`,
  );
}
