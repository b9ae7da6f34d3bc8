import type { Command } from 'commander';
import * as v from 'valibot';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import { DeleteResponse } from '../../../../lib/schema/model-operations.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { screen } from '../screen.ts';

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
