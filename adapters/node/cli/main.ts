import { CommanderError } from 'commander';
import { exitCodeOf } from './exit-code.ts';
import { createProgram } from './program.ts';
import { screen, shown } from './screen.ts';

// The engine is only loaded by commands that need it: the others start in a fraction of the time.
const compose: typeof import('../compose.ts').compose = async (...args) =>
  (await import('../compose.ts')).compose(...args);

/** Returns what the process list shows: the command without its arguments, of which one may be a key. */
function titleOf(command: string | undefined): string {
  return command && /^[a-z-]+$/.test(command) ? `assay ${command}` : 'assay';
}

/** Runs the command line that this process was started with, and sets its exit code. */
export async function main(): Promise<void> {
  process.title = titleOf(process.argv[2]);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A server goes on, whoever reads what it says, and wherever that cannot be written.
    if (process.argv[2] === 'serve') return;
    // `assay list | head -1`: a reader that has seen enough is no error.
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  try {
    await createProgram({ compose }).parseAsync();
  } catch (error) {
    // Commander has said what it has to say itself.
    if (!(error instanceof CommanderError)) {
      // What goes wrong in use is said in one line; ASSAY_DEBUG shows where it came from.
      if (process.env.ASSAY_DEBUG || !(error instanceof Error)) console.error(error);
      else screen.note(`assay: ${shown(error.message, process.stderr)}`);
    }
    process.exitCode = exitCodeOf(error);
  }
}
