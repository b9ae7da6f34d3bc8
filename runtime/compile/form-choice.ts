import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { type FormChoice, WEIGHT_FORMS, type WeightForm } from '../../lib/schema/form-choice.ts';
import {
  ACCEPTED_ERROR,
  ACCEPTED_SHIFT,
  accuracyText,
  errorText,
  isAccurate,
  type MeasuredForm,
  measuredText,
} from './choose-form.ts';
import { kernelFamily } from './kernels.ts';

/**
 * Factor by which the error at load may exceed the error at the compile, because kernels of another machine may add in
 * another order. In all measurements so far, that changed the error by at most a tenth.
 */
const SLACK = 1.25;

/** Weight forms that `auto` measures on a CPU first. */
const FASTEST = ['int8', 'int4'] as const;
/**
 * Weight forms that `auto` measures if none of `FASTEST` is accurate. `int8-blocks` is for models with a few very large
 * activations, such as SmolLM2, where one scale for a whole row leaves few levels for all other values. `float` is
 * faster on CPUs without kernels for such blocks.
 */
const MORE_ACCURATE = ['int8-blocks', 'float'] as const;

/** Lists the options of the compile that determine the weight form (`CompileOptions`). */
interface FormOptions {
  device: Device;
  precision: Precision;
  fixedShapes?: unknown;
  refused?: readonly WeightForm[];
}

/**
 * Returns the weight forms to compile, in tiers. A tier is compiled only if no form of the tiers before it is accurate.
 * If no form at all is, the last one is used.
 *
 * A requested form (`precision`) is the only one. `auto` chooses 8 bits for static graphs (`fixedShapes`), the
 * published weights for a device other than the CPU, and on a CPU the forms to measure, among them the blocks of a GGUF
 * file. It leaves out the forms in `refused`, except `float`. Without a reference to compare with, it keeps the
 * precision of weights published in 4 bits or in a GGUF file on a CPU, and compiles any others to 8 bits.
 *
 * @throws AssayError `engine_failed` if the requested form is among `refused`
 */
export function formTiers(
  { device, precision, fixedShapes, refused = [] }: FormOptions,
  { published, hasReference }: { published: WeightForm; hasReference: boolean },
): [first: FixedPrecision[], ...later: FixedPrecision[][]] {
  if (precision !== 'auto') {
    if (!refused.some((form) => form === precision)) return [[precision]];
    throw new AssayError(
      'engine_failed',
      `This machine computes wrong numbers with --precision ${precision}. Start with --precision auto, which chooses an accurate form.`,
    );
  }
  if (fixedShapes) return [['int8']];
  if (device !== 'CPU') return [['keep']];
  const usable = (forms: readonly WeightForm[]) => forms.filter((form) => form === 'float' || !refused.includes(form));
  const inBlocks = published === 'int4' || published === 'published';
  const first = usable(
    hasReference ? [...FASTEST, ...(published === 'published' ? [published] : [])] : [inBlocks ? published : 'int8'],
  );
  const last = usable(hasReference ? MORE_ACCURATE : ['float']);
  return first.length > 0 ? [first, last] : [last];
}

/** Holds what determined the choice of a weight form. */
export interface Decision {
  options: FormOptions;
  chosen: MeasuredForm;
  measured: readonly MeasuredForm[];
  /** Reason why there is no reference to compare with; null if there is one. */
  lack: string | null;
  /** Reason why the published graph runs, and not one that is written here; null if one is. */
  foreign?: string | null;
}

/**
 * Returns the record of a choice for the manifest: its reason as text, the measurements, and the error above which a
 * load refuses the form (null if the error was not measured).
 */
export function choiceOf({ options, chosen, measured, lack, foreign = null }: Decision): FormChoice {
  const kernels = kernelFamily();
  return {
    reason: [reasonOf(options, chosen, measured, kernels), ...notes(options, lack, foreign)].join('. '),
    kernels,
    measured: measured.map(({ form, error, shift, ms }) => ({
      form,
      error,
      ...(shift === undefined ? {} : { shift }),
      ms,
    })),
    errorLimit: chosen.error === null ? null : Math.max(ACCEPTED_ERROR, SLACK * chosen.error),
  };
}

/**
 * Returns a warning for a form that was requested although it is not accurate enough for `auto`; null for an accurate
 * one. `refuseUseless` refuses forms that are much further off.
 */
export function accuracyWarning(form: WeightForm, { measured }: FormChoice): string | null {
  const inaccurate = measured.find((one) => one.form === form && !isAccurate(one));
  if (inaccurate?.shift !== undefined) {
    return `In ${form}, this model has ${accuracyText(inaccurate)}, more than the ${ACCEPTED_SHIFT} that auto accepts, so its probabilities are not quite its author's. Start with --precision auto, which chooses an accurate form.`;
  }
  return inaccurate
    ? `In ${form}, this model has its ${errorText(inaccurate.error)}, more than the ${100 * ACCEPTED_ERROR}% that auto accepts, so its answers may be worse. Start with --precision auto, which chooses an accurate form.`
    : null;
}

function reasonOf(
  { device, precision, fixedShapes }: FormOptions,
  chosen: MeasuredForm,
  measured: readonly MeasuredForm[],
  kernels: string,
): string {
  if (precision !== 'auto') {
    const limit = chosen.shift === undefined ? `${100 * ACCEPTED_ERROR}%` : `${ACCEPTED_SHIFT}`;
    const far = isAccurate(chosen) ? '' : `, more than the ${limit} that auto accepts`;
    return `asked for with --precision ${precision}; ${accuracyText(chosen)}${far}`;
  }
  if (fixedShapes) {
    const bits = chosen.form === 'int4' ? '4 bits, as published' : '8 bits, the form for graphs over fixed shapes';
    return `${bits}; ${accuracyText(chosen)}`;
  }
  if (device !== 'CPU') return `the published weights, for this ${device}`;
  return measured.length > 1
    ? `the fastest accurate form on this CPU (${kernels}): ${measuredText(measured)}`
    : `the one form left for this CPU (${kernels}): ${accuracyText(chosen)}`;
}

function notes({ refused = [] }: FormOptions, lack: string | null, foreign: string | null): string[] {
  return [
    ...(refused.length > 0 ? [`Refused at load for wrong numbers: ${refused.join(', ')}`] : []),
    ...(lack === null ? [] : [`Not compared with 32-bit floats: ${lack}`]),
    ...(foreign === null ? [] : [`Runs the published graph: ${foreign}`]),
  ];
}

/**
 * Lists the precisions that a caller can request: `auto` chooses the best weight form for the device, the name of a
 * form requests that form, and `keep` leaves the weights as published.
 */
export const PRECISIONS = ['auto', ...WEIGHT_FORMS, 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];
/** Names a precision that leaves no choice of weight forms. */
export type FixedPrecision = Exclude<Precision, 'auto'>;
