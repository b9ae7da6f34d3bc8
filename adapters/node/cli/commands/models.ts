import { totalmem } from 'node:os';
import type { Command } from 'commander';
import * as v from 'valibot';
import { isAssayError, messageOf } from '../../../../lib/errors.ts';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import {
  downloadBytes,
  fitsMemory,
  memoryBytes,
  modelFor,
  RECOMMENDED_MODELS,
  type RecommendedModel,
} from '../../../../lib/models/recommended-models.ts';
import { ModelList } from '../../../../lib/schema/model-list.ts';
import { DeleteResponse } from '../../../../lib/schema/model-operations.ts';
import { examineModel } from '../../../../runtime/hub/examine-model.ts';
import { openHub } from '../../../../runtime/hub/hub-client.ts';
import { hubEnvironment } from '../../../../runtime/store/environment.ts';
import { COMMAND } from '../../command.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { EXIT } from '../exit-code.ts';
import { screen, table } from '../screen.ts';

/**
 * Largest difference between the listed and the actual download size that `--check` accepts, as a share of the listed.
 */
const TOLERANCE = 0.25;

/** Adds the command `assay models`. */
export function addModels(program: Command): void {
  program
    .command('models')
    .description('List published models to start with, likely the best first, and mark those that fit this machine.')
    .option('--check', 'check on the hub that each model exists, runs here and has the stated size')
    .option('--json', 'print JSON')
    .addHelpText('after', MODELS_HELP)
    .action(async ({ check, json }: { check?: boolean; json?: boolean }) => {
      const memory = totalmem();
      const models = RECOMMENDED_MODELS.map((model) => ({
        ...model,
        download_bytes: downloadBytes(model),
        memory_bytes: memoryBytes(model),
        fits: fitsMemory(model, memory),
        recommended: [modelFor(memory, 'decisions'), modelFor(memory, 'extraction')].includes(model),
      }));
      if (check) return checkAll(json ?? false);
      if (json) return screen.json(models);
      const rows = models.map((model) => [
        model.recommended ? `${model.id} *` : model.id,
        `${(model.parameters / 1e9).toFixed(2)}B`,
        formatBytes(model.download_bytes),
        formatBytes(model.memory_bytes),
        model.fits ? 'yes' : 'no',
        `${Math.round(model.context / 1024)}k`,
        model.modalities.join('+'),
        languagesOf(model),
        model.licence,
        model.family ? `decisions (${model.family})` : model.uses.join(', '),
        (model.rows ?? []).map(({ benchmark, result }) => `${benchmark}: ${result}`).join(', '),
      ]);
      screen.line(table([HEAD, ...rows]));
      const recommended = models.filter((model) => model.recommended).map(({ id }) => `${COMMAND} pull ${id}`);
      if (recommended.length > 0) screen.line(`\n* for this machine: ${recommended.join(', or ')}`);
    });
}

const HEAD = [
  'MODEL',
  'WEIGHTS',
  'DOWNLOAD',
  'MEMORY',
  'FITS',
  'CONTEXT',
  'READS',
  'LANGUAGES',
  'LICENCE',
  'GOOD FOR',
  'AS ITS MAKERS MEASURED',
] as const;

const MODELS_HELP = `
Decision models come first: they only answer questions with options, with their authors' prompts and probabilities (docs/decision-models.md).
Sizes are approximate: the download is of 4-bit weights, of decision models of 16-bit ones; memory is for 8-bit weights and the KV of a prompt of 4,096 tokens. The order follows
the publishers' benchmarks; it was not measured here. You can pull other models, too: assay doctor --model <id> tells whether one runs.

Examples:
  $ assay models
  $ assay models --json | jq -r '.[] | select(.fits) | .id'
  $ assay models --check`;

function languagesOf({ languages }: RecommendedModel): string {
  if (typeof languages === 'number') return String(languages);
  return languages.length > 4 ? String(languages.length) : languages.join(' ');
}

/**
 * Compares the list of recommended models with the hub. Sets exit code 1 if the hub lacks a model, if a model cannot
 * run here, or if its size differs from the listed size by more than `TOLERANCE`.
 */
async function checkAll(json: boolean): Promise<void> {
  const hub = await openHub(hubEnvironment());
  const results: { id: string; problem: string | null }[] = [];
  for (const model of RECOMMENDED_MODELS) {
    const problem = await problemOf(model, hub);
    results.push({ id: model.id, problem });
    if (!json) screen.line(`${model.id}: ${problem ?? 'as stated'}`);
  }
  if (json) screen.json(results);
  if (results.some(({ problem }) => problem !== null)) process.exitCode = EXIT.no;
}

async function problemOf(model: RecommendedModel, hub: Awaited<ReturnType<typeof openHub>>): Promise<string | null> {
  try {
    const signal = new AbortController().signal;
    const { refusal, chosen } = await examineModel(hub, parseModelId(model.id), { device: 'CPU', signal });
    if (refusal !== null || !chosen) return `cannot run here: ${refusal}`;
    const stated = downloadBytes(model);
    if (Math.abs(chosen.downloadBytes / stated - 1) <= TOLERANCE) return null;
    return `${formatBytes(chosen.downloadBytes)} to download, stated as ${formatBytes(stated)}`;
  } catch (error) {
    // No other model can be checked then either.
    if (isAssayError(error, 'hub_unreachable')) throw error;
    return messageOf(error);
  }
}

/** Adds the command `assay list`. */
export function addList(program: Command): void {
  connectionFlags(program.command('list').alias('ls').description('List the models of this machine with their status.'))
    .addHelpText('after', LIST_HELP)
    .action(async (flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: true });
      try {
        const list = v.parse(ModelList, await (await connection.request('/v1/models')).json());
        if (flags.json) screen.json(list);
        else if (list.data.length === 0)
          screen.line(`There are no models on this machine. Fetch one: ${COMMAND} pull onnx-community/Qwen3-0.6B-ONNX`);
        else screen.line(table([['MODEL', 'STATUS'], ...list.data.map(({ id, status }) => [id, status])]));
      } finally {
        await connection.close();
      }
    });
}

const LIST_HELP = `
active       loaded, answers requests
compiled     ready to load
downloaded   on this machine; compiled when it is loaded
available    ships with Assay; compiled when it is loaded

Example:
  $ assay list --json | jq -r '.data[].id'`;

const KIND = { compiled: 'compiled files', weights: 'downloaded weights', locks: 'lock files' } as const;

/** Adds the command `assay rm`. */
export function addRemove(program: Command): void {
  connectionFlags(
    program.command('rm').description('Remove a model from this machine: compiled files, weights and lock files.'),
  )
    .argument('<model>')
    .option('--compiled-only', 'keep the downloaded weights')
    .addHelpText('after', REMOVE_HELP)
    .action(async (model: string, flags: ConnectionFlags & { compiledOnly?: boolean }) => {
      parseModelId(model);
      const connection = await connect(flags, { alone: true, box: true });
      try {
        const body = { model, compiled_only: flags.compiledOnly ?? false };
        const report = v.parse(DeleteResponse, await (await connection.request('/v1/models/delete', { body })).json());
        if (flags.json) return screen.json(report);
        const removed = report.removed.map(({ kind, bytes }) =>
          bytes > 0 ? `${KIND[kind]} (${formatBytes(bytes)})` : KIND[kind],
        );
        screen.line(
          removed.length > 0
            ? `Removed ${removed.join(', ')} of ${model}.`
            : `There was nothing to remove of ${model}.`,
        );
      } finally {
        await connection.close();
      }
    });
}

const REMOVE_HELP = `
A loaded model cannot be removed; unload it first. The weights of a bundled model stay, because they are part of Assay.

Examples:
  $ assay rm onnx-community/Qwen3-0.6B-ONNX
  $ assay rm onnx-community/Qwen3-0.6B-ONNX --compiled-only`;
