import { realpath, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { type ModelId, parseModelId } from '../../../../lib/model-id.ts';
import { isFileError, systemCode } from '../../../../runtime/store/disk-error.ts';
import { hubEnvironment } from '../../../../runtime/store/environment.ts';
import { importGguf } from '../../../../runtime/store/import-gguf.ts';
import { StorePaths } from '../../../../runtime/store/paths.ts';
import { COMMAND } from '../../command.ts';
import { assayHome, serverConfig } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { localFlags } from '../parse-flags.ts';
import { screen } from '../screen.ts';

/** Namespace of imported models without a name of their own. */
const NAMESPACE = 'local';

/** Adds the command `assay import`. */
export function addImport(program: Command): void {
  localFlags(
    program
      .command('import')
      .description('Add a GGUF file on this machine to its models.')
      .argument('<file.gguf>')
      .option('--name <id>', 'id of the model (default: local/ and the name of the file)'),
  )
    .addHelpText('after', IMPORT_HELP)
    .action(async (given: string, flags: { name?: string; home?: string; json?: boolean }) => {
      const file = resolve(given);
      const model = parseModelId(flags.name ?? `${NAMESPACE}/${nameOf(file)}`);
      const { hubCache } = hubEnvironment();
      const paths = new StorePaths({ hubCache, assayHome: assayHome(flags, process.env), bundled: null });
      const bytes = await readAndImport(paths, model, file).catch((cause: unknown) => {
        if (!isFileError(cause)) throw cause;
        throw new UsageError(`${file} cannot be read (${systemCode(cause)}).`, { cause });
      });
      if (flags.json) return screen.json({ model, bytes });
      screen.line(`Imported ${formatBytes(bytes)}. Load it with: ${COMMAND} load ${model}`);
    });
}

/** Imports a file whose metadata a child process has read. */
async function readAndImport(paths: StorePaths, model: ModelId, given: string): Promise<number> {
  // The isolation lets the child read this file, and not the target of a link.
  const file = await realpath(given);
  if (!(await stat(file)).isFile()) throw new UsageError(`${given} is not a file. Name one GGUF file.`);
  const [{ Compiles }, { openIsolation }, { createLog }] = await Promise.all([
    import('../../../../runtime/supervisor/children/compiles.ts'),
    import('../../../../runtime/supervisor/isolation/isolation.ts'),
    import('../../log.ts'),
  ]);
  const isolation = await openIsolation(serverConfig({}, process.env).isolation);
  const compiler = new Compiles({ log: createLog(process.env.ASSAY_DEBUG ? 'debug' : 'silent'), isolation });
  return importGguf(paths, model, file, await compiler.describe(file));
}

/** Returns the name of a file as the second part of a model id. */
function nameOf(file: string): string {
  const name = basename(file)
    .replace(/\.gguf$/i, '')
    .replace(/[^\w.-]+|\.{2,}/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '');
  return name.slice(0, 96) || 'model';
}

const IMPORT_HELP = `
The file stays where it is and is not changed. The cache of Hugging Face tools shares it if that is on the same disk,
and gets a copy otherwise. The model is compiled when it is loaded.

Examples:
  $ assay import ./SmolLM2-135M-Instruct.Q4_K_M.gguf && assay load local/SmolLM2-135M-Instruct.Q4_K_M
  $ assay import ./model.gguf --name me/judge`;
