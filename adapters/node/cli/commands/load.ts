import type { Command } from 'commander';
import * as v from 'valibot';
import { AssayError, isAssayError } from '../../../../lib/errors.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import { LoadResponse, UnloadResponse } from '../../../../lib/schema/model-operations.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { promptLength } from '../parse-flags.ts';
import { prepareModel } from '../prepare.ts';
import type { Connection } from '../request.ts';
import { screen, showPrecision } from '../screen.ts';

type LoadFlags = ConnectionFlags & { maxPromptLen?: number; keep?: boolean | undefined; evict?: boolean };

/** Adds the commands `assay load` and `assay unload`. */
export function addLoad(program: Command): void {
  connectionFlags(
    program
      .command('load')
      .description('Load a model into the memory of the running server.')
      .argument('<models...>', 'several stay in memory beside each other')
      .option(
        '--max-prompt-len <tokens>',
        'largest prompt in tokens, from 16 to the context length of the model (default: what the model and memory allow, at most 32768)',
        promptLength,
      )
      .option('--keep', 'keep the loaded models in memory too, as a server for several models does anyway')
      .option('--evict', 'if it does not fit beside them, unload those that were used least recently'),
  )
    .addHelpText('after', LOAD_HELP)
    .action(async (models: string[], flags: LoadFlags) => {
      for (const model of models) parseModelId(model);
      const connection = await connect(flags, { alone: false, box: true });
      for (const [i, model] of models.entries()) {
        const report = await loadOnServer(connection, model, { ...flags, keep: flags.keep || i > 0 });
        if (flags.json) screen.json(report);
        else showLoad(report);
      }
    });

  connectionFlags(
    program
      .command('unload')
      .description('Free the memory of a loaded model. Requests in flight finish first.')
      .argument('[models...]', 'default: the model that was loaded last'),
  )
    .addHelpText('after', '\nExamples:\n  $ assay unload\n  $ assay unload assay/starter')
    .action(async (models: string[], flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: false, box: true });
      for (const model of models.length > 0 ? models : [undefined]) {
        const sent = model === undefined ? { method: 'POST' } : { body: { model } };
        const report = v.parse(UnloadResponse, await (await connection.request('/unload', sent)).json());
        if (flags.json) screen.json(report);
        else
          screen.line(
            report.model ? `${report.model} is unloaded.` : model ? `${model} was not loaded.` : 'No model was loaded.',
          );
      }
    });
}

function showLoad(report: LoadResponse): void {
  const { model, device, load_ms, max_prompt_len } = report;
  showPrecision(report);
  const limit = `prompts up to ${max_prompt_len} tokens`;
  screen.line(
    load_ms === 0
      ? `${model} was loaded already on the ${device} (${limit}).`
      : `${model} is loaded on the ${device} (${(load_ms / 1000).toFixed(1)} s, ${limit}).`,
  );
}

const LOAD_HELP = `
Unless the server was started for several models (assay serve --model A --model B, or --memory), the loaded model is
unloaded once its requests in flight have finished. --keep keeps it; a model that does not fit is then refused.

Examples:
  $ assay load assay/starter
  $ assay load org/decider onnx-community/Qwen3-0.6B-ONNX
  $ assay load onnx-community/Qwen3-0.6B-ONNX --max-prompt-len 8192`;

/**
 * Loads a model on the server and returns the server's report. Compiles the model first if it is not compiled yet, and
 * shows the progress unless `flags.json` is set.
 *
 * @throws AssayError the error that the server reports
 * @throws NoServerError if the connection breaks
 */
export async function loadOnServer(connection: Connection, model: string, flags: LoadFlags): Promise<LoadResponse> {
  const length = flags.maxPromptLen === undefined ? {} : { max_prompt_len: flags.maxPromptLen };
  const quiet = flags.json ?? false;
  await prepareModel(connection, { model, allow_download: false, ...length }, { quiet }).catch((error) => {
    // If the model is missing or busy, the load that follows reports it.
    const expected = isAssayError(error, 'not_downloaded') || isAssayError(error, 'operation_in_progress');
    if (!(error instanceof AssayError && expected)) throw error;
  });
  const { keep, evict } = flags;
  const beside = { ...(keep ? { keep_others: true } : {}), ...(evict ? { evict: true } : {}) };
  const response = await connection.request('/v1/models/load', { body: { model, ...length, ...beside } });
  return v.parse(LoadResponse, await response.json());
}
