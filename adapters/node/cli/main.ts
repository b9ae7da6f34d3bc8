import { totalmem } from 'node:os';
import { CommanderError } from 'commander';
import * as v from 'valibot';
import { modelFor } from '../../../lib/models/recommended-models.ts';
import { EdgeHealth, Health } from '../../../lib/schema/status.ts';
import { VERSION } from '../../../lib/version.ts';
import { COMMAND } from '../command.ts';
import { type ConnectionFlags, connect } from './connection.ts';
import { EXIT, exitCodeOf, NoServerError } from './exit-code.ts';
import { createProgram } from './program.ts';
import { screen, shown, table } from './screen.ts';

// Imports the engine only when a command needs it: all other commands start several times as fast.
const compose: typeof import('../compose.ts').compose = async (...args) =>
  (await import('../compose.ts')).compose(...args);

/** Returns the title of this process for the process list, without the arguments, which may contain an API key. */
function titleOf(command: string | undefined): string {
  return command && /^[a-z-]+$/.test(command) ? `assay ${command}` : 'assay';
}

/** Runs the command line of this process and sets the exit code. Errors are printed, never thrown. */
export async function main(): Promise<void> {
  process.title = titleOf(process.argv[2]);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A server keeps running if its output cannot be written, for example because its reader has ended.
    if (process.argv[2] === 'serve') return;
    // A reader that stops early is not an error, as in `assay list | head -1`.
    if (error.code === 'EPIPE') process.exit();
    const full = error.code === 'ENOSPC' || error.code === 'EDQUOT';
    screen.note(`assay: The output cannot be written${full ? ': the disk is full' : ` (${error.code})`}.`);
    process.exit(full ? EXIT.diskFull : EXIT.other);
  });
  // A message that nobody can read must not change the exit code, as in `assay pull a/b 2>&1 | head -1`.
  process.stderr.on('error', () => undefined);
  try {
    if (process.argv.length === 2) screen.line(await nextSteps());
    else await createProgram({ compose }).parseAsync();
  } catch (error) {
    // Commander has already printed its message.
    if (!(error instanceof CommanderError)) {
      // An error is shown as one line; ASSAY_DEBUG adds its stack.
      if (process.env.ASSAY_DEBUG || !(error instanceof Error)) console.error(error);
      else screen.note(`assay: ${shown(error.message, process.stderr)}`);
    }
    process.exitCode = exitCodeOf(error);
  }
}

/**
 * Returns the text that `assay` shows if no command is given: whether a server is running, and useful next commands.
 * Throws `UsageError` if the address of the server is invalid.
 */
async function nextSteps(flags: ConnectionFlags = {}): Promise<string> {
  const [state, steps] = await stepsOf(flags);
  const rows = [...steps, [`${COMMAND} --help`, 'all commands, each with --help']].map(([command, why]) => [
    `  ${command}`,
    why ?? '',
  ]);
  return [
    `Assay ${VERSION}: many small questions about one text, answered on this machine.`,
    state,
    '',
    table(rows),
  ].join('\n');
}

const ASK = [`${COMMAND} decide "Is this urgent?" -o yes -o no -c "The server is down."`, 'answer one question'];

/** Returns the step that fetches the model recommended for this machine, if `active` is the small starter model. */
function larger(active: string): string[][] {
  const model = modelFor(totalmem(), 'decisions');
  return model && active === 'assay/starter' ? [[`${COMMAND} pull ${model.id}`, 'fetch a decision model']] : [];
}

async function stepsOf(flags: ConnectionFlags): Promise<[state: string, steps: string[][]]> {
  try {
    const connection = await connect(flags, { alone: false });
    const health = v.parse(v.union([EdgeHealth, Health]), await (await connection.request('/health')).json());
    const { active_model: model } = health;
    if ('boxes' in health) {
      return [`An edge runs at ${connection.url}.`, [ASK, [`${COMMAND} list`, 'the models of its boxes']]];
    }
    if (model === 'none') {
      return [
        `A server runs at ${connection.url}, without a model.`,
        [
          [`${COMMAND} load assay/starter`, 'load the model that ships with Assay'],
          [`${COMMAND} list`, 'the models of this machine'],
        ],
      ];
    }
    return [
      `A server runs at ${connection.url} and answers with ${model}.`,
      [
        ASK,
        [`${connection.url}/playground`, 'try it in the browser'],
        [`${COMMAND} top`, 'queue, tokens and memory of the server'],
        ...larger(model),
      ],
    ];
  } catch (error) {
    if (!(error instanceof NoServerError)) throw error;
    return [
      error.message,
      [
        [`${COMMAND} serve`, 'start the server, with a playground in the browser'],
        [ASK[0]!, 'or answer one question without a server'],
        [`${COMMAND} doctor`, 'what this machine can do'],
      ],
    ];
  }
}
