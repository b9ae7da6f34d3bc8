import type { Command } from 'commander';
import { AssayError, type ErrorCode } from '../../../../lib/errors.ts';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import { hubEnvironment } from '../../../../runtime/store/environment.ts';
import { type ModelChoice, recordChoice, recordedChoice } from '../../../../runtime/store/model-choice.ts';
import { StorePaths } from '../../../../runtime/store/paths.ts';
import { COMMAND } from '../../command.ts';
import { assayHome } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { promptLength } from '../parse-flags.ts';
import { prepareModel } from '../prepare.ts';
import { screen, showPrecision } from '../screen.ts';

type PullFlags = ConnectionFlags & { maxPromptLen?: number; dtype?: string; adapter?: string; file?: string };

/** Adds the commands `assay pull` and `assay compile`. */
export function addPull(program: Command): void {
  const modelFlags = (command: Command): Command =>
    command
      .argument('<model>', 'such as onnx-community/Qwen3-0.6B-ONNX, or with a GGUF file: acme/model-GGUF:Q4_K_M')
      .option(
        '--max-prompt-len <tokens>',
        'largest prompt in tokens, from 16 to the context length of the model (default: the context length, at most 32768)',
        promptLength,
      );

  connectionFlags(
    modelFlags(
      program.command('pull').description('Fetch a model from the hub and compile it for this machine.'),
    ).option(
      '--dtype <format>',
      'number format to fetch, such as q4 or fp16; this command then does the work itself, without a server',
    ),
  )
    .option(
      '--adapter <model>',
      'LoRA adapter to merge into the model; the result has the name of the adapter; this command then does the work itself, without a server',
    )
    .option(
      '--file <name>',
      'GGUF file to fetch, or the part in which its name differs, such as Q4_K_M; later commands use it, too; this command then does the work itself, without a server',
    )
    .addHelpText('after', PULL_EXAMPLES)
    .action((model: string, flags: PullFlags) => run(model, flags, true));

  connectionFlags(
    modelFlags(
      program.command('compile').description('Compile a model that is on this machine, without contacting the hub.'),
    ),
  )
    .addHelpText('after', '\nExample:\n  $ assay compile onnx-community/Qwen3-0.6B-ONNX --max-prompt-len 8192')
    .action((model: string, flags: PullFlags) => run(model, flags, false));
}

const PULL_EXAMPLES = `
If the command is interrupted, run it again: the download resumes. Models are stored in the cache that Hugging Face tools
share (HF_HOME, HF_HUB_CACHE). HF_TOKEN gives access to gated models; HF_ENDPOINT names another hub. A running server downloads with
the variables of the shell that started it.

Examples:
  $ assay pull onnx-community/Qwen3-0.6B-ONNX
  $ assay pull onnx-community/Qwen3-0.6B-ONNX --max-prompt-len 8192
  $ assay pull Qwen/Qwen3-0.6B --adapter acme/my-adapter
  $ assay pull Qwen/Qwen3-0.6B-GGUF --file Q8_0
  $ HF_TOKEN=hf_... assay pull onnx-community/gemma-3-270m-it-ONNX`;

async function run(given: string, flags: PullFlags, download: boolean): Promise<void> {
  const [, named = '', tag] = /^([^:]*)(?::(.*))?$/su.exec(given) ?? [];
  if (tag !== undefined && flags.file !== undefined && tag !== flags.file) {
    throw new UsageError(`The model names the file ${tag}, and --file names ${flags.file}. Name it once.`);
  }
  const base = parseModelId(named);
  const adapter = flags.adapter === undefined ? null : parseModelId(flags.adapter);
  const model = adapter ?? base;
  const file = flags.file ?? tag;
  const choice: ModelChoice = { ...(adapter ? { base } : {}), ...(file === undefined ? {} : { file }) };
  const chosen = Object.keys(choice).length > 0;
  const roots = { hubCache: hubEnvironment().hubCache, assayHome: assayHome(flags, process.env), bundled: null };
  const paths = new StorePaths(roots);
  const before = await recordedChoice(paths, model);
  if (chosen) await recordChoice(paths, model, choice);
  if (flags.dtype) process.env.ASSAY_DTYPE = flags.dtype;
  const connection = await connect(flags, {
    alone: true,
    box: true,
    always: flags.dtype !== undefined || chosen,
  });
  try {
    const length = flags.maxPromptLen === undefined ? {} : { max_prompt_len: flags.maxPromptLen };
    const report = await prepareModel(
      connection,
      { model, allow_download: download, ...length },
      { quiet: flags.json ?? false },
    ).catch(async (error: unknown) => {
      if (chosen) await recordChoice(paths, model, before);
      throw download && connection.url !== null ? withServersHub(error, process.env) : error;
    });
    if (flags.json) return screen.json(report);
    showPrecision(report);
    const fetched =
      report.bytes > 0 ? `Fetched ${formatBytes(report.bytes)}.` : download ? 'Everything was here already.' : '';
    const compiled = report.compiled ? 'Compiled' : 'Compiled earlier';
    const asked = flags.maxPromptLen === undefined ? '' : ` --max-prompt-len ${flags.maxPromptLen}`;
    screen.line(
      `${fetched} ${compiled} for prompts up to ${report.max_prompt_len} tokens. Load it with: ${COMMAND} load ${model}${asked}`.trim(),
    );
  } finally {
    await connection.close();
  }
}

const HUB_VARIABLES = ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN', 'HF_ENDPOINT'] as const;

/**
 * Returns an error of the hub with a hint: if this shell sets one of `HUB_VARIABLES`, the server does not see it,
 * because it has the variables of the shell that started it. Returns any other error unchanged.
 */
export function withServersHub(error: unknown, env: NodeJS.ProcessEnv): unknown {
  const set = HUB_VARIABLES.find((name) => env[name]);
  if (!set || !(error instanceof AssayError) || !OF_HUB.has(error.code)) return error;
  const hint = `The server downloads, so ${set} counts only in the shell that starts it.`;
  return new AssayError(error.code, `${error.message} ${hint}`, { cause: error });
}

const OF_HUB: ReadonlySet<ErrorCode> = new Set(['hub_unreachable', 'model_not_allowed', 'model_not_found']);
