import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { PRECISIONS, type Precision, type PrecisionChoice } from '../../lib/schema/precision.ts';
import { kernelFamily } from './kernels.ts';

/**
 * Lists the precisions that a caller can request: `auto` chooses the best for the device, and `keep` leaves the weights
 * as published.
 */
export const REQUESTED_PRECISIONS = ['auto', ...PRECISIONS, 'keep'] as const;
export type RequestedPrecision = (typeof REQUESTED_PRECISIONS)[number];
/** Names a requested precision that leaves no choice. */
export type FixedPrecision = Exclude<RequestedPrecision, 'auto'>;

/** Holds the measurements of one precision of a model on this machine. */
export interface MeasuredPrecision {
  precision: Precision;
  /** Error of its logits against those in 32-bit floats (`logitError`); null if it was not measured. */
  error: number | null;
  /**
   * Difference to 32-bit floats that 95% of a decision model's probabilities do not exceed, on its author's prompt;
   * absent for a model that generates text, and if it was not measured.
   */
  shift?: number;
  /** Milliseconds of processor time that a small request takes. */
  ms: number;
}

/**
 * Largest error of a precision that `auto` accepts (`logitError`). Measured: 8 bits 0.04 to 0.12 (the starter model
 * 0.11), published 4-bit weights 0.04 to 0.09, small models quantized here to 4 bits 0.39 to 0.59; clamped 8-bit sums
 * (AVX2, models with random weights) 0.31 to 0.52.
 */
export const ACCEPTED_ERROR = 0.2;

/** Largest `shift` of a decision model's precision that `auto` accepts. */
export const ACCEPTED_SHIFT = 0.02;

/**
 * Error above which a precision is refused even if it was requested, because its answers have little to do with the
 * model's. Measured: SmolLM2-135M quantized here to 4 bits 1.0 to 1.3, small random models 0.3 to 0.5.
 */
const REFUSED_ERROR = 0.75;

/** Error reported for a precision that gives NaN or does not run on this CPU: larger than any measured one. */
export const UNUSABLE_ERROR = 1e6;

/** A precision counts as equally fast if it takes at most this many times as long as the fastest. */
const SAME_SPEED = 1.1;
/** The same for decision models, whose probabilities are what they are used for. */
const SAME_SPEED_EXACT = 1.5;

/**
 * Returns the fastest accurate precision (`isAccurate`); of those within `SAME_SPEED`, the most accurate. Returns
 * undefined if none is accurate.
 */
export function choosePrecision<One extends MeasuredPrecision>(measured: readonly One[]): One | undefined {
  const accurate = measured.filter(isAccurate);
  const fastest = Math.min(...accurate.map(({ ms }) => ms));
  return accurate
    .filter(({ ms, shift }) => ms <= fastest * (shift === undefined ? SAME_SPEED : SAME_SPEED_EXACT))
    .toSorted((one, other) => (one.shift ?? one.error ?? 0) - (other.shift ?? other.error ?? 0))[0];
}

/**
 * Tells whether `auto` accepts a precision: its error, or for a decision model the shift of its probabilities, is small
 * enough or was not measured. False for NaN.
 */
export function isAccurate({ error, shift }: Pick<MeasuredPrecision, 'error' | 'shift'>): boolean {
  if (shift !== undefined) return shift <= ACCEPTED_SHIFT;
  return error === null || error <= ACCEPTED_ERROR;
}

/** Throws `engine_failed` if a precision's error is above `REFUSED_ERROR`, so that its answers would be useless. */
export function refuseUseless({ precision, error }: Pick<MeasuredPrecision, 'precision' | 'error'>): void {
  if (error === null || error <= REFUSED_ERROR) return;
  const limit =
    error === UNUSABLE_ERROR ? '' : `, more than the ${100 * REFUSED_ERROR}% beyond which answers are nonsense`;
  throw new AssayError(
    'engine_failed',
    `This model cannot be used as ${precision}: ${errorText(error)}${limit}. Use --precision auto, which chooses an accurate precision.`,
  );
}

/** Formats measurements for users, for example `int8 41.0 ms, logits off by 3.0%; int4 67.2 ms, logits off by 2.1%`. */
export function measuredText(measured: readonly MeasuredPrecision[]): string {
  return measured
    .map(
      (one) =>
        `${one.precision} ${one.error === UNUSABLE_ERROR ? '' : `${one.ms.toFixed(1)} ms, `}${accuracyText(one)}`,
    )
    .join('; ');
}

/**
 * Formats the error of a precision's logits for users. `error` is a fraction; null: not measured; `UNUSABLE_ERROR`: the
 * precision fails on this CPU.
 */
export function errorText(error: number | null): string {
  if (error === null) return 'accuracy not measured';
  return error === UNUSABLE_ERROR ? 'fails on this CPU' : `logits off by ${(100 * error).toFixed(1)}%`;
}

/**
 * Formats the accuracy of a precision for users: the shift of a decision model's probabilities, otherwise its error.
 */
export function accuracyText({ error, shift }: Pick<MeasuredPrecision, 'error' | 'shift'>): string {
  return shift === undefined ? errorText(error) : `95% of its probabilities within ${shift.toFixed(3)} of floats`;
}

/**
 * Factor by which the error at load may exceed the error at the compile, because kernels of another machine may add in
 * another order. In all measurements so far, that changed the error by at most a tenth.
 */
const SLACK = 1.25;

/** Precisions that `auto` measures on a CPU first. */
const FASTEST = ['int8', 'int4'] as const;
/**
 * Precisions that `auto` measures if none of `FASTEST` is accurate. `int8-blocks` is for models with a few very large
 * activations, such as SmolLM2, where one scale for a whole row leaves few levels for all other values. `float` is
 * faster on CPUs without kernels for such blocks.
 */
const MORE_ACCURATE = ['int8-blocks', 'float'] as const;

/** Lists the options of the compile that determine the precision (`CompileOptions`). */
interface PrecisionOptions {
  device: Device;
  precision: RequestedPrecision;
  fixedShapes?: unknown;
  refused?: readonly Precision[];
}

/**
 * Returns the precisions to compile, in tiers. A tier is compiled only if none of the tiers before it is accurate. If
 * none at all is, the last one is used.
 *
 * A precision that was asked for is the only one. `auto` chooses 8 bits for static graphs (`fixedShapes`), the
 * published weights for a device other than the CPU, and on a CPU those to measure, among them the blocks of a GGUF
 * file. It leaves out the precisions in `refused`, except `float`. Without a reference to compare with, it keeps the
 * precision of weights published in 4 bits or in a GGUF file on a CPU, and compiles any others to 8 bits.
 *
 * @throws AssayError `engine_failed` if the requested precision is among `refused`
 */
export function precisionTiers(
  { device, precision, fixedShapes, refused = [] }: PrecisionOptions,
  { published, hasReference }: { published: Precision; hasReference: boolean },
): [first: FixedPrecision[], ...later: FixedPrecision[][]] {
  if (precision !== 'auto') {
    if (!refused.some((one) => one === precision)) return [[precision]];
    throw new AssayError(
      'engine_failed',
      `This machine computes wrong numbers with --precision ${precision}. Start with --precision auto, which chooses an accurate precision.`,
    );
  }
  if (fixedShapes) return [['int8']];
  if (device !== 'CPU') return [['keep']];
  const usable = (precisions: readonly Precision[]) =>
    precisions.filter((one) => one === 'float' || !refused.includes(one));
  const inBlocks = published === 'int4' || published === 'published';
  const first = usable(
    hasReference ? [...FASTEST, ...(published === 'published' ? [published] : [])] : [inBlocks ? published : 'int8'],
  );
  const last = usable(hasReference ? MORE_ACCURATE : ['float']);
  return first.length > 0 ? [first, last] : [last];
}

/** Holds what determined the choice of a precision. */
export interface Decision {
  options: PrecisionOptions;
  chosen: MeasuredPrecision;
  measured: readonly MeasuredPrecision[];
  /** Reason why there is no reference to compare with; null if there is one. */
  lack: string | null;
  /** Reason why the published graph runs, and not one that is written here; null if one is. */
  foreign?: string | null;
}

/**
 * Returns the record of a choice for the manifest: its reason as text, the measurements, and the error above which a
 * load refuses the precision (null if the error was not measured).
 */
export function choiceOf({ options, chosen, measured, lack, foreign = null }: Decision): PrecisionChoice {
  const kernels = kernelFamily();
  return {
    reason: [reasonOf(options, chosen, measured, kernels), ...notes(options, lack, foreign)].join('. '),
    kernels,
    measured: measured.map(({ precision, error, shift, ms }) => ({
      precision,
      error,
      ...(shift === undefined ? {} : { shift }),
      ms,
    })),
    errorLimit: chosen.error === null ? null : Math.max(ACCEPTED_ERROR, SLACK * chosen.error),
  };
}

/**
 * Returns a warning for a precision that was requested although it is not accurate enough for `auto`; null for an
 * accurate one. `refuseUseless` refuses those that are much further off.
 */
export function accuracyWarning(precision: Precision, { measured }: PrecisionChoice): string | null {
  const inaccurate = measured.find((one) => one.precision === precision && !isAccurate(one));
  if (inaccurate?.shift !== undefined) {
    return `In ${precision}, this model has ${accuracyText(inaccurate)}, more than the ${ACCEPTED_SHIFT} that auto accepts, so its probabilities are not quite its author's. Start with --precision auto, which chooses an accurate precision.`;
  }
  return inaccurate
    ? `In ${precision}, this model has its ${errorText(inaccurate.error)}, more than the ${100 * ACCEPTED_ERROR}% that auto accepts, so its answers may be worse. Start with --precision auto, which chooses an accurate precision.`
    : null;
}

function reasonOf(
  { device, precision, fixedShapes }: PrecisionOptions,
  chosen: MeasuredPrecision,
  measured: readonly MeasuredPrecision[],
  kernels: string,
): string {
  if (precision !== 'auto') {
    const limit = chosen.shift === undefined ? `${100 * ACCEPTED_ERROR}%` : `${ACCEPTED_SHIFT}`;
    const far = isAccurate(chosen) ? '' : `, more than the ${limit} that auto accepts`;
    return `asked for with --precision ${precision}; ${accuracyText(chosen)}${far}`;
  }
  if (fixedShapes) {
    const bits = chosen.precision === 'int4' ? '4 bits, as published' : '8 bits, for graphs over fixed shapes';
    return `${bits}; ${accuracyText(chosen)}`;
  }
  if (device !== 'CPU') return `the published weights, for this ${device}`;
  return measured.length > 1
    ? `the fastest accurate precision on this CPU (${kernels}): ${measuredText(measured)}`
    : `the one precision left for this CPU (${kernels}): ${accuracyText(chosen)}`;
}

function notes({ refused = [] }: PrecisionOptions, lack: string | null, foreign: string | null): string[] {
  return [
    ...(refused.length > 0 ? [`Refused at load for wrong numbers: ${refused.join(', ')}`] : []),
    ...(lack === null ? [] : [`Not compared with 32-bit floats: ${lack}`]),
    ...(foreign === null ? [] : [`Runs the published graph: ${foreign}`]),
  ];
}
