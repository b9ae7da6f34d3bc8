import type { Command } from 'commander';
import * as v from 'valibot';
import { RunTasksResponse } from '../../../../lib/schema/task-response.ts';
import { CUT_TASKS_HEADER } from '../../../../lib/tasks/cut-tasks.ts';
import { COMMAND, shellWord } from '../../command.ts';
import { UsageError } from '../../usage-error.ts';
import { type AskFlags, askFlags, sharedFields, warnIfCut, withModel } from '../ask.ts';
import { once, repeated } from '../parse-flags.ts';
import { type InputFlags, isJsonText, readContext, readJson } from '../read-input.ts';
import { AUDIO_HELP, IMAGE_HELP, type MediaFlags, readMedia } from '../read-media.ts';
import { screen } from '../screen.ts';

type RunFlags = AskFlags & InputFlags & MediaFlags;

const TOKENS = 1024;

/** Adds the command `assay run`. */
export function addRun(program: Command): void {
  askFlags(
    program
      .command('run')
      .description('Run a file of tasks about one text, image or recording, in one request.')
      .argument('<tasks.json>', 'a list of tasks, or a whole request of POST /v1/tasks; - is standard input')
      .option('-f, --file <path>', 'file with the text, if the tasks file has none (default: standard input)', once)
      .option('-c, --context <text>', 'the text itself', once)
      .option('-i, --image <path>', IMAGE_HELP, repeated)
      .option('--audio <path>', AUDIO_HELP, repeated),
  )
    .addHelpText('after', RUN_HELP)
    .action(async (file: string, flags: RunFlags) => {
      const content = await readJson(file, 'The list of tasks');
      const name = isJsonText(file) ? 'The request' : file;
      const request = Array.isArray(content) ? { tasks: content } : content;
      if (typeof request !== 'object' || request === null || !('tasks' in request)) {
        throw new UsageError(
          `${name} must contain a list of tasks or an object with "tasks". ${COMMAND} run --help shows an example.`,
        );
      }
      const hasInput = 'context' in request || 'messages' in request;
      if (hasInput && (flags.context !== undefined || flags.file !== undefined)) {
        throw new UsageError(`${name} has a text already. Remove it there, or leave out --context and --file.`);
      }
      const input = hasInput ? {} : { context: await readContext(flags, `${COMMAND} run ${shellWord(file)}`) };
      const media = await readMedia(flags);
      const named = 'model' in request ? request.model : undefined;
      if (named !== undefined && typeof named !== 'string') throw new UsageError(`${name}: model must be a string.`);
      const asked = flags.model ?? named;
      const { answer, cut } = await withModel(
        { ...flags, ...(asked === undefined ? {} : { model: asked }) },
        async (connection, model) => {
          // A flag overrides the field of the file.
          const defaults =
            'max_output_tokens' in request && flags.maxOutputTokens === undefined
              ? request.max_output_tokens
              : undefined;
          const body = {
            ...request,
            ...input,
            ...media,
            ...sharedFields(flags, TOKENS),
            ...(defaults === undefined ? {} : { max_output_tokens: defaults }),
            model,
          };
          const response = await connection.request('/v1/tasks', { body });
          return { answer: await response.text(), cut: response.headers.get(CUT_TASKS_HEADER) };
        },
      );
      const response = v.parse(v.pipe(v.string(), v.parseJson(), RunTasksResponse), answer);
      // Prints the received JSON text itself, because parsing it would move members named by numbers, such as "10".
      screen.line(flags.json ? answer : (response.choices[0]?.message.content ?? ''));
      warnIfCut(response, cut);
    });
}

const RUN_HELP = `
Prints the results by name, as one JSON object in the order of the tasks.

Examples:
  $ cat tasks.json
  [{ "type": "decide", "name": "urgent", "question": "Is this urgent?", "options": ["yes", "no"] },
   { "type": "extract", "name": "who", "instruction": "The sender", "keys": ["name", "company"] }]
  $ assay run tasks.json < mail.txt
  $ assay run tasks.json --file mail.txt | jq -r .urgent.value`;
