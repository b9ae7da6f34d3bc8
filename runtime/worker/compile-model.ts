import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Device } from '../../lib/backend.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { chooseForm, isAccurate, type MeasuredForm, refuseUseless } from '../compile/choose-form.ts';
import { type PlannedForm, planEncoder, planForm } from '../compile/compile-form.ts';
import { choiceOf, formsToMake } from '../compile/form-choice.ts';
import { COMPILER_VERSION, type Manifest, writeManifest } from '../compile/manifest.ts';
import type { Precision } from '../compile/precision.ts';
import { REFERENCE_FILE, type Reference } from '../compile/reference.ts';
import { lackForReference } from '../compile/reference-space.ts';
import { staticContext, staticShapes } from '../compile/static-shapes.ts';
import type { StaticShape } from '../onnx/static/plain-attention.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import { FormFolders } from './form-folders.ts';
import { measureForm, referenceFrom } from './measure-form.ts';
import { probePrompt } from './probe-prompt.ts';

export type { Precision } from '../compile/precision.ts';

export interface CompileOptions {
  /** Folder of the published model; it is only read. */
  source: string;
  /** Folder for the result; empty or absent. After an error the caller removes it. */
  target: string;
  device: Device;
  precision: Precision;
  maxPromptLen: number;
  /** Sequences that one run can take, if the model supports it. Default: 8 on a CPU, 1 elsewhere. */
  slots?: number;
  /**
   * Splits the model into graphs over fixed shapes, which NPUs need (`static-graphs.ts`): `auto` chooses sizes for
   * `maxPromptLen`. Throws `engine_failed` for a model without such a form.
   */
  fixedShapes?: 'auto' | readonly StaticShape[];
  /** Forms that gave wrong numbers at load on this machine; they are not made again. */
  refused?: readonly WeightForm[];
  /** Receives progress in bytes of weights. */
  onStep?(step: CompileProgress): void;
  signal?: AbortSignal;
}

/** Slots of a model on a CPU. Measured: `npm run bench -- crowd`. */
const DEFAULT_SLOTS = 8;

/**
 * Compiles a published model for this machine: packed branches, logits only for the rows that are read, weights in the
 * requested form. On a CPU, `auto` makes several forms, measures them and keeps one. One tensor is in memory at a time.
 * The same input gives the same graph and weights. Throws `engine_failed` for a model that cannot be used.
 */
export async function compileModel(options: CompileOptions): Promise<Manifest> {
  const { source, target, device, onStep, signal } = options;
  onStep?.({ step: 'reading', done: 0, total: 1 });
  const { fixedShapes, maxPromptLen } = options;
  const slots = slotsFor(options);
  const float = await planForm(source, 'float', { maxPromptLen, slots });
  const { vocabSize, contextLength } = float.facts;
  const shapes = fixedShapes === 'auto' ? staticShapes(staticContext(maxPromptLen, contextLength)) : fixedShapes;
  let lack = lackForReference(float.bytes, target);
  const forms = formsToMake(options, { published: float.published, hasReference: lack === null });
  const plans = await Promise.all(forms.map((form) => planForm(source, form, { maxPromptLen, shapes, slots })));
  const folders = new FormFolders(target, (step) => onStep?.(step), signal);
  const encoder = planEncoder(source);
  folders.expect([...(lack === null ? [float] : []), ...plans, ...(encoder ? [encoder] : [])]);
  /** Writes a form that can be opened; the reason for the choice is added later. */
  const write = async (name: string, plan: PlannedForm): Promise<string> => {
    const folder = await folders.write(name, plan);
    writeManifest(folder, manifestOf(options, plan, { reason: '', kernels: '', measured: [], errorLimit: null }));
    return folder;
  };

  let reference: Reference | null = null;
  if (lack === null) {
    const folder = await write('reference', float);
    reference = await referenceFrom(folder, await probePrompt(source, vocabSize, contextLength));
    rmSync(folder, { recursive: true });
    lack = reference ? null : 'the published graph does not run on this CPU';
  }

  const made: (MeasuredForm & { plan: PlannedForm; folder: string })[] = [];
  for (const [index, plan] of plans.entries()) {
    const folder = await write(`form-${index}`, plan);
    const figures = reference ? await measureForm(folder, reference, plans.length > 1) : { error: null, ms: 0 };
    const measured = { form: plan.facts.form, plan, folder, ...figures };
    if (options.precision !== 'auto') refuseUseless(measured);
    made.push(measured);
  }
  let chosen = plans.length > 1 ? chooseForm(made) : made[0];
  const auto = options.precision === 'auto' && device === 'CPU';
  if (!chosen || (auto && !isAccurate(chosen))) {
    folders.expect([float]);
    const folder = await write('float', float);
    chosen = { form: 'float', error: reference ? 0 : null, ms: 0, plan: float, folder };
  }
  folders.keep(chosen.folder);
  if (encoder) await folders.add(encoder);
  const manifest = manifestOf(options, chosen.plan, choiceOf({ options, chosen, measured: made, lack }));
  if (reference) writeFileSync(join(target, REFERENCE_FILE), JSON.stringify(reference));
  writeManifest(target, manifest);
  return manifest;
}

/** Providers of other devices are not known to run that many attention nodes well. */
function slotsFor({ device, slots }: CompileOptions): number {
  return slots ?? (device === 'CPU' ? DEFAULT_SLOTS : 1);
}

function manifestOf(options: CompileOptions, { facts }: PlannedForm, choice: Manifest['choice']): Manifest {
  const { device, maxPromptLen } = options;
  return {
    version: COMPILER_VERSION,
    device,
    choice,
    maxPromptLen: Math.min(maxPromptLen, facts.contextLength),
    ...facts,
  };
}
