import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import type { Device } from '../../lib/backend.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { chooseForm, isAccurate, type MeasuredForm, refuseUseless, UNUSABLE_ERROR } from '../compile/choose-form.ts';
import { type PlannedForm, planEncoder, planForm } from '../compile/compile-form.ts';
import { choiceOf, formTiers } from '../compile/form-choice.ts';
import { COMPILER_VERSION, type Manifest, writeManifest } from '../compile/manifest.ts';
import type { FixedPrecision, Precision } from '../compile/precision.ts';
import { REFERENCE_FILE, type Reference } from '../compile/reference.ts';
import { lackForReference } from '../compile/reference-space.ts';
import { staticContext, staticShapes } from '../compile/static-shapes.ts';
import { contractInFolder } from '../contracts/read-files.ts';
import type { StaticShape } from '../onnx/rewrites/static/plain-attention.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import { FormFolders } from './form-folders.ts';
import { decisionProbabilities, shiftOf } from './measure-decisions.ts';
import { measureForm, referenceFrom } from './measure-form.ts';
import { probePrompt } from './probe-prompt.ts';

export type { Precision } from '../compile/precision.ts';

export interface CompileOptions {
  /** Id of the model, by which some decision models are recognised. */
  model?: string;
  /** Folder of the published model, which is only read. */
  source: string;
  /** Folder for the result, which must be empty or absent. After an error the caller removes it. */
  target: string;
  device: Device;
  precision: Precision;
  maxPromptLen: number;
  /** Number of sequences that one run can compute, if the model supports several. Default: 8 on a CPU, 1 elsewhere. */
  slots?: number;
  /**
   * Sizes of the static graphs to split the model into, which NPUs need (`static-graphs.ts`). `auto` chooses them for
   * `maxPromptLen`; absent: no static graphs.
   */
  fixedShapes?: 'auto' | readonly StaticShape[];
  /**
   * Weight forms that computed wrong logits at load on this machine. Precision `auto` chooses another form; a compile
   * to one of them throws `engine_failed`.
   */
  refused?: readonly WeightForm[];
  /** Receives the progress, in bytes of weights (`CompileProgress`). */
  onStep?(step: CompileProgress): void;
  signal?: AbortSignal;
}

/** Number of sequences that one run on a CPU can compute. Chosen by measurement (`npm run bench -- crowd`). */
const DEFAULT_SLOTS = 8;

/**
 * Compiles a published model for this machine: with packed branches, logits only for the requested positions, and
 * weights in the requested form. On a CPU, precision `auto` compiles several forms (`formTiers`), measures them and
 * keeps one. Holds one weight tensor in memory at a time. The same input and form give the same graph and weights.
 * Returns the manifest, which is also written. Throws `engine_failed` for a model that cannot be compiled or split into
 * the static graphs; after an abort, throws the signal's reason.
 */
export async function compileModel(options: CompileOptions): Promise<Manifest> {
  const { source, target, onStep, signal } = options;
  onStep?.({ step: 'reading', done: 0, total: 1 });
  const { fixedShapes, maxPromptLen } = options;
  const slots = slotsFor(options);
  const contract = (await contractInFolder(source, options.model ?? '')) ?? undefined;
  const float = await planForm(source, 'float', { maxPromptLen, slots, contract });
  const { vocabSize, contextLength } = float.facts;
  const shapes = fixedShapes === 'auto' ? staticShapes(staticContext(maxPromptLen, contextLength)) : fixedShapes;
  let lack = lackForReference(float.bytes, target);
  const [first, ...later] = formTiers(options, { published: float.published, hasReference: lack === null });
  const plansOf = (forms: readonly FixedPrecision[]): Promise<PlannedForm[]> =>
    Promise.all(forms.map((form) => planForm(source, form, { maxPromptLen, shapes, slots, contract })));
  const plans = await plansOf(first);
  const folders = new FormFolders(target, (step) => onStep?.(step), signal);
  const encoder = await planEncoder(source);
  folders.expect([...(lack === null ? [float] : []), ...plans, ...(encoder ? [encoder] : [])]);
  /**
   * Writes a weight form with a manifest, because measuring opens the form as a model. The manifest states no choice
   * until all forms are measured.
   */
  const write = async (name: string, plan: PlannedForm): Promise<string> => {
    const folder = await folders.write(name, plan);
    writeManifest(folder, manifestOf(options, plan, { reason: '', kernels: '', measured: [], errorLimit: null }));
    return folder;
  };

  let reference: Reference | null = null;
  let floats: number[] | null = null;
  if (lack === null) {
    const folder = await write('reference', float);
    reference = await referenceFrom(folder, await probePrompt(source, vocabSize, contextLength));
    if (reference && contract) floats = await decisionProbabilities(folder, source, contract);
    rmSync(folder, { recursive: true });
    lack = reference ? null : 'the published graph does not run on this CPU';
  }

  const made: (MeasuredForm & { plan: PlannedForm; folder: string })[] = [];
  const measure = async (plan: PlannedForm): Promise<void> => {
    const folder = await write(`form-${made.length}`, plan);
    const withSpeed = plans.length + later.length > 1;
    const figures = reference ? await measureForm(folder, reference, withSpeed) : { error: null, ms: 0 };
    const shift =
      contract && floats && figures.error !== UNUSABLE_ERROR
        ? { shift: shiftOf(await decisionProbabilities(folder, source, contract), floats) }
        : {};
    const measured = { form: plan.facts.form, plan, folder, ...figures, ...shift };
    if (options.precision !== 'auto') refuseUseless(measured);
    made.push(measured);
  };
  for (const plan of plans) await measure(plan);
  for (const forms of later) {
    // The blocks of a GGUF file are nearly always accurate, and seldom the fastest.
    if (made.some((one) => isAccurate(one) && one.form !== 'published')) break;
    const more = await plansOf(forms);
    folders.expect(more);
    for (const plan of more) await measure(plan);
  }
  const chosen = chooseForm(made) ?? at(made, made.length - 1);
  folders.keep(chosen.folder);
  if (encoder) await folders.add(encoder);
  const manifest = manifestOf(options, chosen.plan, choiceOf({ options, chosen, measured: made, lack }));
  if (reference) writeFileSync(join(target, REFERENCE_FILE), JSON.stringify(reference));
  writeManifest(target, manifest);
  return manifest;
}

/**
 * Returns the number of sequences that one run must be able to compute: 1 on devices other than the CPU, whose
 * execution providers are not known to run the attention nodes of several sequences well.
 */
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
