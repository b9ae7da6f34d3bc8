import { CommanderError } from 'commander';
import { exitCodeOf } from './exit-code.ts';
import { nextSteps } from './next-steps.ts';
import { createProgram } from './program.ts';
import { screen, shown } from './screen.ts';

// The engine is imported only by commands that need it, because all others then start in a fraction of the time.
const compose: typeof import('../compose.ts').compose = async (...args) =>
  (await import('../compose.ts')).compose(...args);

/** Returns the title for the process list: the command without its arguments, one of which may be an API key. */
function titleOf(command: string | undefined): string {
  return command && /^[a-z-]+$/.test(command) ? `assay ${command}` : 'assay';
}

/** Runs the command line of this process, and sets its exit code. */
export async function main(): Promise<void> {
  process.title = titleOf(process.argv[2]);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A server keeps running when its output has no reader or cannot be written.
    if (process.argv[2] === 'serve') return;
    // `assay list | head -1`: a reader that stops early is not an error.
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  try {
    if (process.argv.length === 2) screen.line(await nextSteps());
    else await createProgram({ compose }).parseAsync();
  } catch (error) {
    // Commander has already printed its message.
    if (!(error instanceof CommanderError)) {
      // Errors in use are one line; ASSAY_DEBUG shows the stack.
      if (process.env.ASSAY_DEBUG || !(error instanceof Error)) console.error(error);
      else screen.note(`assay: ${shown(error.message, process.stderr)}`);
    }
    process.exitCode = exitCodeOf(error);
  }
}
