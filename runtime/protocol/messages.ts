import * as v from 'valibot';
import type { ChatRequest, Priority, TaskBatch } from '../../lib/backend.ts';
import { CutNames, MOST_TASKS, TaskAnswer } from '../../lib/contract/batch.ts';
import { deltas, finish } from '../../lib/contract/chat.ts';
import { list, MEDIA_KINDS, Sha256 } from '../../lib/contract/conversation.ts';
import { ERROR_CODES } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { Device } from '../../lib/schema/metrics.ts';
import { ModelCapabilities, ModelContract } from '../../lib/schema/model-list.ts';
import { Precision, PrecisionChoice } from '../../lib/schema/precision.ts';
import { count } from '../../lib/schema/values.ts';
import type { RequestedPrecision } from '../compile/choose-precision.ts';
import type { EncoderContract } from '../contracts/encoder-contracts.ts';
import { MediaPlan } from '../media/media-plan.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { MessagePart } from './message-parts.ts';

/**
 * Messages between the server and the engine process. The server validates each message of the process, which reads
 * untrusted files: an invalid one ends it. The process trusts the server.
 */

const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(64));
const Text = v.pipe(v.string(), v.maxLength(4 * 1024 * 1024));
/** File that is made from the metadata of a GGUF file. The largest published tokenizers take about 35 MB. */
const DerivedText = v.pipe(v.string(), v.maxLength(256 * 1024 * 1024));
const Label = v.pipe(v.string(), v.maxLength(1024));
const ModelIdText = v.custom<ModelId>((value) => typeof value === 'string');

/** Names a compiled model to load, and the settings to load it with. */
export interface LoadSpec {
  model: ModelId;
  /** Absolute path of the folder with the compiled model and its text files. */
  dir: string;
  /** Plugin and device that the model was compiled for; absent: a device that onnxruntime-node supports itself. */
  plugin?: PluginTarget;
  /**
   * Maximum tokens of one prompt; absent: as many as the model was compiled for, or fewer if the machine's memory does
   * not allow them.
   */
  maxPromptLen?: number;
  /** Number of threads that run the model; absent: one for each physical core. */
  threads?: number;
  /** True to read texts that are too long for an encoder model in windows, if its family defines that. */
  windows?: boolean;
  /** Folder in which prefixes outlive the process, the key of its files in hex, and the most bytes of them. */
  saved?: { folder: string; key: string; maxBytes: number };
}

/** Describes a loaded model to the server. */
export const ModelInfo = v.object({
  model: ModelIdText,
  device: Device,
  /** Maximum tokens of one prompt. */
  maxPromptLen: count,
  /** Maximum tokens of a prompt and its answer together. */
  contextLength: count,
  /** Kind of media that the server must open for this model; absent if the model reads only text. */
  reads: v.exactOptional(v.picklist(MEDIA_KINDS)),
  /** Number of samples at 16 kHz of the longest recording that fits in a prompt; absent if the model reads no audio. */
  mostSamples: v.exactOptional(count),
  /** Describes what the model can do; absent for a model that generates text. */
  capabilities: v.exactOptional(ModelCapabilities),
  /** Names how the model is asked. */
  contract: v.exactOptional(ModelContract),
  /** Reason why an answer may depend on what runs beside it; null if it does not; absent if that is not known. */
  dependence: v.exactOptional(v.nullable(Text)),
  loadMs: v.number(),
});
export type ModelInfo = v.InferOutput<typeof ModelInfo>;

export interface CompileSpec {
  /** Id of the model, by which some decision models are recognised. */
  model?: string;
  /** Absolute path of the folder with the published model, which is only read. */
  source: string;
  /** Absolute path of the folder for the result, which must be empty or absent. */
  target: string;
  device: Device;
  precision: RequestedPrecision;
  maxPromptLen: number;
  /** Number of threads that may compute the model. Default: `machineThreads`. */
  threads?: number;
  /** Contract of an encoder model; absent for a model that generates text. */
  contract?: EncoderContract;
  /** Plugin that drives the device; absent if onnxruntime-node supports it itself. */
  plugin?: PluginTarget;
  /**
   * Precisions that computed wrong logits when they were loaded. `auto` chooses another one; a compile to one of them
   * fails.
   */
  refused?: readonly Precision[];
}

export const CompileProgress = v.object({
  step: v.picklist(['reading', 'weights', 'measuring', 'graph', 'device']),
  /**
   * Weight bytes written so far, of all candidates that the compile writes. In the step `reading` 0; in the step
   * `device` the number of graphs that the device has compiled.
   */
  done: v.number(),
  /**
   * Weight bytes to write in all. In the step `reading` 1; in the step `device` the number of graphs, and one for the
   * measurement.
   */
  total: v.number(),
});
export type CompileProgress = v.InferOutput<typeof CompileProgress>;

/** Describes the result of a compile to the server. */
export const CompileReport = v.object({
  device: Device,
  maxPromptLen: count,
  precision: Precision,
  choice: PrecisionChoice,
  /** Most threads that compute tasks with the same bits alone and in company (`mostThreadsOf`); absent: any number. */
  mostThreads: v.exactOptional(count),
  /** Measured error and speed of the device; absent if no plugin drives it. */
  figures: v.exactOptional(DeviceFigures),
});
export type CompileReport = v.InferOutput<typeof CompileReport>;

/** Identifies an image or a recording by the hash of its file and the level of detail at which the model sees it. */
const MediaKey = { sha256: Sha256, detail: v.picklist(['low', 'high']) };
/** Names an image or a recording that the server must decode for the engine, and the plan for decoding it. */
export const WantedMedia = v.object({ ...MediaKey, plan: MediaPlan });
export type WantedMedia = v.InferOutput<typeof WantedMedia>;
/** Carries the decoded content of an image or a recording: its tiles or chunks, as the plan specifies. */
export interface PreparedMedia extends Omit<WantedMedia, 'plan'> {
  data: Uint8Array;
}
/** Maximum number of images or recordings in one request. */
export const MOST_MEDIA = 16;

export type Work = { kind: 'tasks'; batch: TaskBatch } | { kind: 'chat'; request: ChatRequest };

/** Returns the request that a work contains. */
export function requestOf(work: Work): TaskBatch | ChatRequest {
  return work.kind === 'tasks' ? work.batch : work.request;
}

/** Describes who sent a request; both fields are absent for callers without a key. */
export interface CallerFields {
  /** Name of the caller. Callers get equal shares of the engine. */
  caller?: string;
  /** Requests with the same scope share cached prefixes. */
  cacheScope?: string;
}

/** Lists the messages from the server to the engine process. A long one is sent as its parts. */
export type ToEngine = WholeMessage | MessagePart;
export type WholeMessage = { id: string } & (
  | { type: 'load'; spec: LoadSpec }
  | { type: 'compile'; spec: CompileSpec }
  /** Asks for the text files that are made from the metadata of a GGUF file. */
  | { type: 'describe'; file: string }
  /**
   * Asks the engine process to run the checks of a request that need the model, and to keep the request until `run` or
   * `cancel` follows.
   */
  | ({ type: 'prepare'; work: Work; priority?: Priority } & CallerFields)
  /**
   * Queues a prepared request, with the decoded media that the message `prepared` asked for. The request fails with
   * `timeout` if it is not answered `timeoutMs` milliseconds after this message.
   */
  | { type: 'run'; timeoutMs: number; media?: PreparedMedia[] }
  | { type: 'cancel' }
);

/**
 * Phases of the engine process. For each phase, `SilenceLimits` (`supervisor/children/engine-child.ts`) states how
 * long the process may send no message before it counts as hung. In `open`, native code opens the model; in `text`, the
 * tokenizer, template and grammars are loaded or used; in `step`, the model runs or the process is idle; in `compile`,
 * a model is compiled.
 */
export const PHASES = ['open', 'text', 'step', 'compile'] as const;
export type Phase = (typeof PHASES)[number];

/**
 * Counts the images or recordings of a request that were encoded and those whose features were cached, and states the
 * milliseconds that encoding took.
 */
export const MediaFigures = v.object({
  kind: v.picklist(MEDIA_KINDS),
  encoded: count,
  cached: count,
  encodeMs: v.pipe(v.number(), v.minValue(0)),
});
export type MediaFigures = v.InferOutput<typeof MediaFigures>;

/**
 * Numbers of KV cells that hold a token: in sequences of running requests, and in idle ones, which cache prefixes for
 * later requests.
 */
export const KvCells = v.object({ running: count, cached: count, most: count });
export type KvCells = v.InferOutput<typeof KvCells>;

/**
 * Number of running jobs, number of jobs in the engine's queue, KV cells in use, and number of prefixes that could not
 * be saved.
 */
export const EngineLoad = v.object({ running: count, waiting: count, kvCells: KvCells, saveFailures: count });
export type EngineLoad = v.InferOutput<typeof EngineLoad>;

/** Load of an engine process without a model. */
export const NO_LOAD: EngineLoad = {
  running: 0,
  waiting: 0,
  kvCells: { running: 0, cached: 0, most: 0 },
  saveFailures: 0,
};

/**
 * Memory of the engine process that JavaScript owns, in bytes: the heap that V8 has reserved, and buffers, which are
 * mostly KV. The rest of its resident memory is code, weights and onnxruntime's working memory.
 */
export const EngineMemory = v.object({ heapBytes: count, bufferBytes: count });
export type EngineMemory = v.InferOutput<typeof EngineMemory>;

/** Messages from the engine process to the server. */
export const FromEngine = v.variant('type', [
  /** Reports that the process is ready for messages. */
  v.object({ type: v.literal('hello') }),
  /**
   * Announces the phase that begins next, because native code may then block the process and with it all messages. Sent
   * again at each sign of progress in the phase.
   */
  v.object({ type: v.literal('phase'), phase: v.picklist(PHASES) }),
  v.object({ type: v.literal('loaded'), id: Id, info: ModelInfo }),
  v.object({
    type: v.literal('progress'),
    id: Id,
    ...CompileProgress.entries,
  }),
  v.object({
    type: v.literal('compiled'),
    id: Id,
    report: CompileReport,
  }),
  v.object({ type: v.literal('described'), id: Id, texts: v.record(Label, DerivedText) }),
  v.object({
    type: v.literal('prepared'),
    id: Id,
    promptTokens: count,
    /**
     * Images or recordings of the request whose features are not cached. The server must send them, decoded, with
     * `run`.
     */
    wanted: v.exactOptional(v.pipe(v.array(WantedMedia), v.maxLength(MOST_MEDIA))),
  }),
  /** Reports that the request is in the engine's queue. */
  v.object({ type: v.literal('queued'), id: Id }),
  v.object({ type: v.literal('reasoning'), id: Id, ...deltas.reasoning }),
  v.object({ type: v.literal('content'), id: Id, ...deltas.content }),
  v.object({ type: v.literal('tool_call'), id: Id, ...deltas.tool_call }),
  v.object({ type: v.literal('answers'), id: Id, answers: list(TaskAnswer, MOST_TASKS), cut: CutNames }),
  v.object({ type: v.literal('finished'), id: Id, ...finish, media: v.exactOptional(MediaFigures) }),
  v.object({
    type: v.literal('failed'),
    id: Id,
    error: v.object({
      code: v.picklist(ERROR_CODES),
      message: Text,
      param: v.exactOptional(Text),
      retryAfterSeconds: v.exactOptional(count),
    }),
    /** Precision that computes wrong logits on this machine; another one may work. */
    refusedPrecision: v.exactOptional(Precision),
    /** Text of the underlying error, for the log only. */
    detail: v.exactOptional(Text),
  }),
  /** Sent every half second, except while a step of the model or other work blocks the process. */
  v.object({ type: v.literal('heartbeat'), rssBytes: count, memory: EngineMemory, ...EngineLoad.entries }),
]);
export type FromEngine = v.InferOutput<typeof FromEngine>;

/** Lists the messages that answer one request, from the time it is queued to the end of its answer. */
export type Reply = Extract<
  FromEngine,
  { type: 'queued' | 'reasoning' | 'content' | 'tool_call' | 'answers' | 'finished' }
>;
