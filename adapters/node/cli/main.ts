import { CommanderError } from 'commander';
import { EXIT, exitCodeOf } from './exit-code.ts';
import { nextSteps } from './next-steps.ts';
import { createProgram } from './program.ts';
import { screen, shown } from './screen.ts';

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
