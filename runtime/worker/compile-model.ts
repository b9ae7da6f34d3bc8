import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import type { TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { formatBytes } from '../../lib/format-bytes.ts';
import {
  choiceOf,
  choosePrecision,
  type FixedPrecision,
  isAccurate,
  type MeasuredPrecision,
  precisionTiers,
  refuseUseless,
  UNUSABLE_ERROR,
} from '../compile/choose-precision.ts';
import { machineThreads } from '../compile/kernels.ts';
import {
  COMPILER_VERSION,
  type EncoderManifest,
  type Manifest,
  mostThreadsOf,
  REFERENCE_FILE,
  type Reference,
  writeManifest,
} from '../compile/manifest.ts';
import { type PlannedModel, planEncoder, planModel } from '../compile/plan-model.ts';
import { type StaticShape, staticContext, staticShapes } from '../compile/static-shapes.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { contractInFolder } from '../contracts/read-files.ts';
import { Sequence } from '../engine/cache/sequence.ts';
import { Engine } from '../engine/engine.ts';
import { type EngineModel, kvShape, openModel } from '../engine/model.ts';
import { logitsOf, referenceError, spreadTokens } from '../engine/self-check/self-check.ts';
import type { CompileProgress, CompileReport, CompileSpec } from '../protocol/messages.ts';
import { SPARE_BYTES } from '../store/disk-error.ts';
import { readModelText } from '../text/model-files.ts';
import { createTextModel } from '../text/text-model.ts';
import { createTokenizer } from '../text/tokenizer/tokenizer.ts';
import { CandidateFolders } from './candidate-folders.ts';
import { planTasks } from './task-job.ts';

export type { RequestedPrecision } from '../compile/choose-precision.ts';

/** Describes a compile; after an error the caller removes `target`. */
export interface CompileOptions extends Omit<CompileSpec, 'plugin' | 'contract'> {
  /** Number of sequences that one run can compute, if the model supports several. Default: 8 on a CPU, 1 elsewhere. */
  slots?: number;
  /**
   * Sizes of the static graphs to split the model into, which NPUs need (`static-graphs.ts`). `auto` chooses them for
   * `maxPromptLen`; absent: no static graphs.
   */
  fixedShapes?: 'auto' | readonly StaticShape[];
  /** Receives the progress, in bytes of weights (`CompileProgress`). */
  onStep?(step: CompileProgress): void;
  signal?: AbortSignal;
}

/** Returns what a compile tells the server about its result. */
export function compileReport(manifest: Manifest | EncoderManifest): CompileReport {
  const { device, maxPromptLen, precision, choice } = manifest;
  const mostThreads = 'kind' in manifest ? undefined : mostThreadsOf(manifest);
  return { device, maxPromptLen, precision, choice, ...(mostThreads === undefined ? {} : { mostThreads }) };
}

/** Number of sequences that one run on a CPU can compute. Chosen by measurement (`npm run bench -- crowd`). */
const DEFAULT_SLOTS = 8;

/**
 * Compiles a published model for this machine: with packed branches, logits only for the requested positions, and
 * weights in the requested precision. On a CPU, `auto` compiles several (`precisionTiers`), measures them and keeps
 * one. Holds one weight tensor in memory at a time. The same input and precision give the same graph and weights.
 * Returns the manifest, which is also written. Throws `engine_failed` for a model that cannot be compiled or split into
 * the static graphs; after an abort, throws the signal's reason.
 */
export async function compileModel(options: CompileOptions): Promise<Manifest> {
  const { source, target, onStep, signal } = options;
  onStep?.({ step: 'reading', done: 0, total: 1 });
  const { fixedShapes, maxPromptLen } = options;
  const slots = slotsFor(options);
  const { threads = machineThreads() } = options;
  const found = await contractInFolder(source, options.model ?? '');
  const contract = found.writes ? undefined : found;
  const float = await planModel(source, 'float', { maxPromptLen, slots, threads, contract });
  const { vocabSize, contextLength } = float.facts;
  const shapes = fixedShapes === 'auto' ? staticShapes(staticContext(maxPromptLen, contextLength)) : fixedShapes;
  let lack = lackForReference(float.bytes, target);
  const [first, ...later] = precisionTiers(options, { published: float.published, hasReference: lack === null });
  const plansOf = (precisions: readonly FixedPrecision[]): Promise<PlannedModel[]> =>
    Promise.all(
      precisions.map((precision) => planModel(source, precision, { maxPromptLen, shapes, slots, threads, contract })),
    );
  const plans = await plansOf(first);
  const folders = new CandidateFolders(target, (step) => onStep?.(step), signal);
  const encoder = await planEncoder(source);
  folders.expect([...(lack === null ? [float] : []), ...plans, ...(encoder ? [encoder] : [])]);
  /**
   * Writes a candidate with a manifest, because measuring opens it as a model. The manifest states no choice
   * until all precisions are measured.
   */
  const write = async (name: string, plan: PlannedModel): Promise<string> => {
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

  const made: (MeasuredPrecision & { plan: PlannedModel; folder: string })[] = [];
  const measure = async (plan: PlannedModel): Promise<void> => {
    const folder = await write(`candidate-${made.length}`, plan);
    const withSpeed = plans.length + later.length > 1;
    const figures = reference ? await measureCandidate(folder, reference, withSpeed) : { error: null, ms: 0 };
    const shift =
      contract && floats && figures.error !== UNUSABLE_ERROR
        ? { shift: shiftOf(await decisionProbabilities(folder, source, contract), floats) }
        : {};
    const measured = { precision: plan.facts.precision, plan, folder, ...figures, ...shift };
    if (options.precision !== 'auto') refuseUseless(measured);
    made.push(measured);
  };
  for (const plan of plans) await measure(plan);
  for (const precisions of later) {
    // The blocks of a GGUF file are nearly always accurate, and seldom the fastest.
    if (made.some((one) => isAccurate(one) && one.precision !== 'published')) break;
    const more = await plansOf(precisions);
    folders.expect(more);
    for (const plan of more) await measure(plan);
  }
  const chosen = choosePrecision(made) ?? at(made, made.length - 1);
  folders.keep(chosen.folder);
  if (encoder) await folders.add(encoder);
  const manifest = manifestOf(
    options,
    chosen.plan,
    choiceOf({ options, chosen, measured: made, lack, foreign: float.foreign }),
  );
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

function manifestOf(options: CompileOptions, { facts }: PlannedModel, choice: Manifest['choice']): Manifest {
  const { device, maxPromptLen } = options;
  return {
    version: COMPILER_VERSION,
    device,
    choice,
    maxPromptLen: Math.min(maxPromptLen, facts.contextLength),
    ...facts,
  };
}

/**
 * Size of the measured request, which resembles real ones: tokens of the prefix, branches after it, and decoding steps.
 */
const PREFIX = 128;
const BRANCHES = 16;
const STEPS = 4;
/** Maximum number of runs of the request. The fastest counts, because other processes slow the others down. */
const ROUNDS = 5;
/** Milliseconds after which no further run starts, except the second. */
const MOST_MS = 4_000;

/** Distance between the positions of the prompt whose logits are stored as a reference. */
const EVERY_POSITION = 4;
/** Maximum number of vocabulary entries whose logits are stored at each position. */
const MOST_LOGITS = 512;

/**
 * Runs a prompt through the model in `folder`, which has 32-bit weights, and returns its logits as the reference.
 * Returns null if the model does not load on this CPU.
 */
async function referenceFrom(folder: string, tokens: readonly number[]): Promise<Reference | null> {
  const model = await openModel(folder).catch(nullIfNotLoadable);
  if (!model) return null;
  const { manifest, forward, close } = model;
  try {
    const positions = [...tokens.keys()].filter((position) => (position + 1) % EVERY_POSITION === 0);
    const probe = {
      tokens: [...tokens],
      positions: positions.length > 0 ? positions : [tokens.length - 1],
      stride: Math.max(1, Math.ceil(manifest.vocabSize / MOST_LOGITS)),
    };
    const logits = await logitsOf(forward, kvShape(manifest), probe);
    // Five digits are far more precise than the logits of any weights.
    return { ...probe, logits: logits.map((row) => row.map((logit) => Number(logit.toPrecision(5)))) };
  } finally {
    await close();
  }
}

/**
 * Measures the candidate in `folder`: the error of its logits against the reference and, with `withSpeed`, the
 * processor time of a small request in milliseconds, otherwise 0. For one that does not load on this CPU or gives no
 * finite error, the error is `UNUSABLE_ERROR`.
 */
async function measureCandidate(
  folder: string,
  reference: Reference,
  withSpeed: boolean,
): Promise<{ error: number; ms: number }> {
  const model = await openModel(folder).catch(nullIfNotLoadable);
  if (!model) return { error: UNUSABLE_ERROR, ms: 0 };
  try {
    const error = await referenceError(model.forward, kvShape(model.manifest), reference);
    // The error is stored as JSON, which cannot represent NaN or infinity.
    return { error: Number.isFinite(error) ? error : UNUSABLE_ERROR, ms: withSpeed ? await requestMs(model) : 0 };
  } finally {
    await model.close();
  }
}

/**
 * Returns null for the error of a graph that cannot be opened on the CPU, such as one for another device. Throws other
 * errors.
 */
function nullIfNotLoadable(error: unknown): null {
  if (error instanceof AssayError && error.code === 'engine_failed') return null;
  throw error;
}

async function requestMs({ forward, manifest }: EngineModel): Promise<number> {
  const prefix = spreadTokens(manifest.vocabSize, Math.min(PREFIX, Math.floor(manifest.contextLength / 2)));
  const began = performance.now();
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && (round < 2 || performance.now() - began < MOST_MS); round++) {
    const sequence = new Sequence(kvShape(manifest), prefix.length + BRANCHES * STEPS);
    const cpu = process.cpuUsage();
    for (const token of prefix) sequence.append(token, sequence.length - 1);
    await forward.run([{ sequence, start: 0, rows: [prefix.length - 1], keep: [prefix.length - 1] }]);
    let ends = Array.from({ length: BRANCHES }, () => prefix.length - 1);
    for (let step = 0; step < STEPS; step++) {
      const start = sequence.length;
      ends = ends.map((parent, branch) => sequence.append(at(prefix, branch % prefix.length), parent));
      await forward.run([{ sequence, start, rows: ends, keep: ends }]);
    }
    const { user, system } = process.cpuUsage(cpu);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** Texts that the questions below are asked about. They resemble requests to the service. */
const TEXTS = [
  'The parcel came two weeks late and the mug was broken. I want my money back.',
  'Thank you for the quick help yesterday. Everything works again, and I have nothing to add.',
  'ERROR 502 from the payment gateway at 09:14, 09:15 and 09:21. Customers cannot pay. Please call me at once.',
];
const QUESTIONS: TaskBatch['tasks'] = [
  {
    type: 'decide',
    name: 'refund',
    kind: 'predicate',
    question: 'Does the writer ask for money back?',
    options: ['true', 'false'],
  },
  { type: 'decide', name: 'urgent', kind: 'predicate', question: 'Is it urgent?', options: ['true', 'false'] },
  {
    type: 'decide',
    name: 'team',
    kind: 'choice',
    question: 'Which team should answer?',
    options: ['billing', 'shipping', 'support', 'engineering', 'nobody'],
  },
  {
    type: 'decide',
    name: 'mood',
    kind: 'score',
    question: 'How angry is the writer?',
    options: ['calm', 'annoyed', 'angry', 'furious'],
  },
];

/**
 * Asks a few questions of the decision model in `folder`, with its author's prompt, and returns the probabilities of
 * all options.
 *
 * @param source folder with the model's text files
 */
async function decisionProbabilities(folder: string, source: string, contract: DecisionContract): Promise<number[]> {
  const { manifest, forward, close } = await openModel(folder);
  try {
    const { maxPromptLen, contextLength } = manifest;
    const text = contractText(createTextModel(await readModelText(source)), maxPromptLen);
    const loaded = { contract, text, open: contract.open(text, source), narrow: manifest.readout !== undefined };
    const engine = new Engine({ forward, kv: kvShape(manifest), maxPromptLen, contextLength, kvBytes: 0 });
    const probabilities: number[] = [];
    for (const context of TEXTS) {
      const batch: TaskBatch = {
        input: { context },
        tasks: QUESTIONS,
        media: [],
        temperature: 0,
        maxOutputTokens: 16,
        probabilities: { calibrated: false },
      };
      const plan = atOnce(planTasks(loaded, batch, { maxPromptLen, contextLength }));
      const { answers } = await plan.answers(async (plan) => {
        const result = engine.submit({ ...plan, id: 'probe', deadline: Number.POSITIVE_INFINITY });
        while (engine.running + engine.queued > 0) await engine.step();
        return result;
      });
      for (const { optionLogprobs = [] } of answers) probabilities.push(...optionLogprobs.map(Math.exp));
    }
    return probabilities;
  } finally {
    await close();
  }
}

/** Returns the difference that 95% of the probabilities do not exceed. */
export function shiftOf(probabilities: readonly number[], reference: readonly number[]): number {
  const shifts = reference.map((wanted, i) => Math.abs((probabilities[i] ?? Number.NaN) - wanted));
  return shifts.toSorted((one, other) => one - other)[Math.ceil(0.95 * shifts.length) - 1] ?? 0;
}

/** Text that resembles a request to the service. */
const TEXT =
  'The parcel came two weeks late and the mug was broken. I want my money back. Does the customer ask for a refund? Answer with yes or no.';
const MOST_TOKENS = 32;

/**
 * Returns the ids of the first tokens, at most 32, of an ordinary text, because precisions must be measured on
 * activations like those of real requests. For a model whose tokenizer cannot be read, returns ids scattered over its
 * vocabulary.
 *
 * @param source folder of the published model
 */
async function probePrompt(source: string, vocabSize: number, contextLength: number): Promise<number[]> {
  const ids = await textTokens(source).catch(() => []);
  const usable = ids.length > 0 && ids.every((id) => id < vocabSize);
  const tokens = usable ? ids : spreadTokens(vocabSize, MOST_TOKENS);
  return tokens.slice(0, Math.min(MOST_TOKENS, contextLength));
}

async function textTokens(source: string): Promise<number[]> {
  const tokenizer = createTokenizer(await readModelText(source));
  const ids = tokenizer.encodeUser(TEXT, false);
  return tokenizer.begin === null || ids[0] === tokenizer.begin ? [...ids] : [tokenizer.begin, ...ids];
}

/** Copies of the weights in memory at the same time: as read from the file, and in the layout of the kernels. */
const COPIES = 2;

/**
 * Returns the reason why the weights in 32-bit floats, from which the reference logits are computed, are too large for
 * the memory, or for the disk beside the other precisions; null if there is enough space.
 *
 * @param bytes size of the weights in 32-bit floats
 * @param target folder for the compiled model, which need not exist yet
 */
export function lackForReference(bytes: number, target: string): string | null {
  const memory = process.availableMemory();
  if (COPIES * bytes > memory) {
    return `that takes ${formatBytes(COPIES * bytes)} of memory, and ${formatBytes(memory)} are free`;
  }
  const { bavail, bsize } = statfsSync(existsSync(target) ? target : dirname(target));
  // All other precisions together are smaller than the one in 32-bit floats.
  if (2 * bytes + SPARE_BYTES > bavail * bsize) {
    return `that takes ${formatBytes(2 * bytes)} of disk, and ${formatBytes(bavail * bsize)} are free`;
  }
  return null;
}
