import addCompletion from '@bomb.sh/tab/commander';
import { Command } from 'commander';
import { VERSION } from '../../../lib/version.ts';
import { COMMAND } from '../command.ts';
import type { compose } from '../compose.ts';
import { addCalibrate } from './commands/calibrate.ts';
import { addChat } from './commands/chat.ts';
import { addDecide } from './commands/decide.ts';
import { addDoctor } from './commands/doctor.ts';
import { addPlugins } from './commands/ep.ts';
import { addEval } from './commands/eval.ts';
import { addExtract } from './commands/extract.ts';
import { addImport } from './commands/import.ts';
import { addKeys } from './commands/keys.ts';
import { addLoad } from './commands/load.ts';
import { addMcp } from './commands/mcp.ts';
import { addList, addModels, addRemove } from './commands/models.ts';
import { addPull } from './commands/pull.ts';
import { addRun } from './commands/run-tasks.ts';
import { addServe } from './commands/serve.ts';
import { addService } from './commands/service.ts';
import { addStatus } from './commands/status.ts';
import { addTop } from './commands/top.ts';

/** Builds the whole `assay` command. Its `parseAsync` rejects with errors that `exitCodeOf` turns into exit codes. */
export function createProgram(parts: { compose: typeof compose }): Command {
  const program = new Command('assay')
    .description('Many small judgement tasks about one shared context, in one request, with a local language model.')
    .version(VERSION)
    .exitOverride()
    // Begins Commander's own messages with `assay: `, as all others.
    .configureOutput({ outputError: (message, write) => write(message.replace(/^error: /, 'assay: ')) })
    .addHelpText('after', EXAMPLES);
  program.commandsGroup('Ask:');
  addDecide(program);
  addExtract(program);
  addRun(program);
  addChat(program);
  addCalibrate(program);
  addEval(program);
  program.commandsGroup('Server:');
  addServe(program, parts.compose);
  addService(program);
  addMcp(program);
  addStatus(program);
  addTop(program);
  addLoad(program);
  addKeys(program);
  program.commandsGroup('Models and machine:');
  addModels(program);
  addPull(program);
  addImport(program);
  addList(program);
  addRemove(program);
  addDoctor(program);
  addPlugins(program);
  program.commandsGroup('Shell:');
  // Added after all other commands, because it reads them.
  addCompletion(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.description('Write a script that completes commands and flags in a shell.')
    .addHelpText('after', COMPLETION_HELP);
  nameHelp(program, COMMAND);
  return program;
}

/**
 * Makes the usage errors of a command and its subcommands name the help of that command. `typed` is the command as the
 * user types it.
 */
function nameHelp(command: Command, typed: string): void {
  const what = command.commands.length > 0 ? 'all commands' : 'its flags';
  command.showHelpAfterError(`(Run ${typed} --help for ${what}.)`);
  for (const below of command.commands) nameHelp(below, `${typed} ${below.name()}`);
}

const COMPLETION_HELP = `
Examples:
  $ assay completion bash > ~/.local/share/bash-completion/completions/assay
  $ assay completion zsh > ~/.zfunc/_assay
  $ assay completion fish > ~/.config/fish/completions/assay.fish`;

const EXAMPLES = `
Examples:
  $ assay decide "Is this urgent?" --option yes --option no < mail.txt
  $ assay serve
  $ assay pull onnx-community/Qwen3-0.6B-ONNX && assay load onnx-community/Qwen3-0.6B-ONNX

Every command has its own help with examples: assay decide --help. Exit codes: docs/cli.md.`;
