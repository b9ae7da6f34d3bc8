import type { Command } from 'commander';
import * as v from 'valibot';
import { AssayError, isAssayError } from '../../../../lib/errors.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import { LoadResponse, UnloadResponse } from '../../../../lib/schema/model-operations.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { promptLength } from '../parse-flags.ts';
import { prepareModel } from '../prepare.ts';
import type { Connection } from '../request.ts';
import { screen } from '../screen.ts';
import { showForm } from '../show-form.ts';

type LoadFlags = ConnectionFlags & { maxPromptLen?: number };

/** Adds the commands `assay load` and `assay unload`. */
export function addLoad(program: Command): void {
  connectionFlags(
    program
      .command('load')
      .description('Load a model into the memory of the running server.')
      .argument('<model>')
      .option(
        '--max-prompt-len <tokens>',
        'largest prompt in tokens, from 16 to the context length of the model (default: what the model and memory allow, at most 32768)',
        promptLength,
      ),
  )
    .addHelpText('after', LOAD_HELP)
    .action(async (model: string, flags: LoadFlags) => {
      parseModelId(model);
      const report = await loadModel(await connect(flags, { alone: false, box: true }), model, flags);
      if (flags.json) return screen.json(report);
      showForm(report);
      const { device, load_ms, max_prompt_len } = report;
      const limit = `prompts up to ${max_prompt_len} tokens`;
      screen.line(
        load_ms === 0
          ? `${model} was loaded already on the ${device} (${limit}).`
          : `${model} is loaded on the ${device} (${(load_ms / 1000).toFixed(1)} s, ${limit}).`,
      );
    });

  connectionFlags(
    program.command('unload').description('Free the memory of the loaded model. Requests in flight finish first.'),
  )
    .addHelpText('after', '\nExample:\n  $ assay unload')
    .action(async (flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: false, box: true });
      const report = v.parse(UnloadResponse, await (await connection.request('/unload', { method: 'POST' })).json());
      if (flags.json) screen.json(report);
      else screen.line(report.model ? `${report.model} is unloaded.` : 'No model was loaded.');
    });
}

const LOAD_HELP = `
If another model is loaded, its requests in flight finish first; then it is unloaded.

Examples:
  $ assay load assay/starter
  $ assay load onnx-community/Qwen3-0.6B-ONNX --max-prompt-len 8192`;

/**
 * Loads a model on the server and returns the server's report. Compiles the model first if it is not compiled yet, and
 * shows the progress unless `flags.json` is set.
 *
 * @throws AssayError the error that the server reports
 * @throws NoServerError if the connection breaks
 */
export async function loadModel(connection: Connection, model: string, flags: LoadFlags): Promise<LoadResponse> {
  const length = flags.maxPromptLen === undefined ? {} : { max_prompt_len: flags.maxPromptLen };
  const quiet = flags.json ?? false;
  await prepareModel(connection, { model, allow_download: false, ...length }, { quiet }).catch((error) => {
    // If the model is missing or busy, the load that follows reports it.
    const expected = isAssayError(error, 'not_downloaded') || isAssayError(error, 'operation_in_progress');
    if (!(error instanceof AssayError && expected)) throw error;
  });
  const response = await connection.request('/v1/models/load', { body: { model, ...length } });
  return v.parse(LoadResponse, await response.json());
}
