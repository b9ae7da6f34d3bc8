import * as v from 'valibot';
import { type ChatRequest, PRIORITIES, type TaskBatch } from '../../lib/backend.ts';
import { ERROR_CODES } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { FormChoice } from '../../lib/schema/form-choice.ts';
import { Device } from '../../lib/schema/metrics.ts';
import { WeightForm } from '../../lib/schema/weight-form.ts';
import { PRECISIONS } from '../compile/precision.ts';
import { MediaPlan } from '../media/media-plan.ts';
import { PluginTarget } from '../ort-plugin/plugin-target.ts';
import {
  ChatRequestSchema,
  CutNames,
  Finish,
  Sha256,
  TaskAnswers,
  TaskBatchSchema,
  TokenLogprobs,
} from './payloads.ts';

/*
 * The messages between server and engine process. Both sides check every message. A bad message from the server fails
 * only its own request; a bad message from the engine process ends the process, because then nothing that it sends can
 * be trusted.
 */

const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(64));
/** Bounds a text to more than an answer can grow between two tokens: a grammar may force some 64 KiB at once. */
const Text = v.pipe(v.string(), v.maxLength(4 * 1024 * 1024));
const Path = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const ModelIdText = v.custom<ModelId>((value) => typeof value === 'string');

/** Lists what a model may read beside text. */
const MediaKind = v.picklist(['image', 'audio']);

/** Names a compiled model to load. */
export const LoadSpec = v.object({
  model: ModelIdText,
  /** Absolute path of a folder that a compile wrote, with the model's text files in it. */
  dir: Path,
  /** Plugin and device that the model was compiled for; absent: a device of onnxruntime-node. */
  plugin: v.exactOptional(PluginTarget),
  /** Bytes of KV cache for running requests and cached prefixes; absent: the engine's default. */
  prefixCacheBytes: v.exactOptional(Count),
  /** Threads of one step; absent: one for each physical core. */
  threads: v.exactOptional(Count),
});
export type LoadSpec = v.InferOutput<typeof LoadSpec>;

/** Describes a loaded model for the server. */
export const ModelInfo = v.object({
  model: ModelIdText,
  device: Device,
  /** Tokens of one prompt. */
  maxPromptLen: Count,
  /** Tokens of prompt and answer together. */
  contextLength: Count,
  /** Names what it reads beside text, which the server then opens. */
  reads: v.exactOptional(MediaKind),
  loadMs: v.number(),
});
export type ModelInfo = v.InferOutput<typeof ModelInfo>;

export const CompileSpec = v.object({
  /** Folder of the published model; it is only read. */
  source: Path,
  /** Folder for the result; empty or absent. */
  target: Path,
  device: Device,
  precision: v.picklist(PRECISIONS),
  maxPromptLen: Count,
  /** The plugin that drives the device; absent: onnxruntime-node does. */
  plugin: v.exactOptional(PluginTarget),
  /** Forms whose numbers were wrong at load; others are made. */
  refused: v.exactOptional(v.array(WeightForm)),
});
export type CompileSpec = v.InferOutput<typeof CompileSpec>;

export const CompileProgress = v.object({
  step: v.picklist(['reading', 'weights', 'measuring', 'graph', 'device']),
  /** `done` of `total` bytes of weights; of graphs, if the device compiles them. */
  done: v.number(),
  total: v.number(),
});
export type CompileProgress = v.InferOutput<typeof CompileProgress>;

/** Describes the result of a compile. */
export const CompileReport = v.object({
  device: Device,
  maxPromptLen: Count,
  form: WeightForm,
  choice: FormChoice,
  /** Measurements of a plugin's device. */
  figures: v.exactOptional(DeviceFigures),
});
export type CompileReport = v.InferOutput<typeof CompileReport>;

/** Identifies a image or recording: its file, and how closely the model looks. */
const MediaKey = { sha256: Sha256, detail: v.picklist(['low', 'high']) };
/** A image or recording that has to be encoded, and how it is prepared. */
export const WantedMedia = v.object({ ...MediaKey, plan: MediaPlan });
export type WantedMedia = v.InferOutput<typeof WantedMedia>;
/** Its tiles or chunks, as its plan says. */
export const PreparedMedia = v.object({
  ...MediaKey,
  data: v.custom<Uint8Array>((value) => value instanceof Uint8Array),
});
export type PreparedMedia = v.InferOutput<typeof PreparedMedia>;
/** Images, or recordings, that one request may have. */
export const MOST_MEDIA = 16;

export type Work = { kind: 'tasks'; batch: TaskBatch } | { kind: 'chat'; request: ChatRequest };

/** Messages from the server to the engine process. */
export const ToEngine = v.variant('type', [
  v.object({ type: v.literal('load'), id: Id, spec: LoadSpec }),
  v.object({ type: v.literal('compile'), id: Id, spec: CompileSpec }),
  /** Checks everything about a request that needs the model, and keeps it until `run` or `cancel`. */
  v.object({
    type: v.literal('prepare'),
    id: Id,
    work: v.variant('kind', [
      v.object({ kind: v.literal('tasks'), batch: TaskBatchSchema }),
      v.object({ kind: v.literal('chat'), request: ChatRequestSchema }),
    ]),
  }),
  /** Queues a prepared request. It fails with `timeout` after `timeoutMs`. */
  v.object({
    type: v.literal('run'),
    id: Id,
    timeoutMs: v.pipe(v.number(), v.minValue(0)),
    priority: v.exactOptional(v.picklist(PRIORITIES)),
    /** The media that `prepared` asked for. */
    media: v.exactOptional(v.pipe(v.array(PreparedMedia), v.maxLength(MOST_MEDIA))),
  }),
  v.object({ type: v.literal('cancel'), id: Id }),
]);
export type ToEngine = v.InferOutput<typeof ToEngine>;

/**
 * Phases of the engine process, which determine how long it may be silent: `open` runs native code that opens a model,
 * `text` the model's tokenizer, template and grammars, `step` a step of the model.
 */
export const PHASES = ['open', 'text', 'step', 'compile'] as const;
export type Phase = (typeof PHASES)[number];

/** Counts the images or recordings of a request, and the time to encode them. */
export const MediaFigures = v.object({
  kind: MediaKind,
  encoded: Count,
  cached: Count,
  encodeMs: v.pipe(v.number(), v.minValue(0)),
});
export type MediaFigures = v.InferOutput<typeof MediaFigures>;

/** Counts KV cells: those of running requests, and those of idle sequences, which keep prefixes for later ones. */
export const KvCells = v.object({ running: Count, cached: Count });
export type KvCells = v.InferOutput<typeof KvCells>;

/** Describes the work in the engine process. */
export const EngineLoad = v.object({ running: Count, waiting: Count, kvCells: KvCells });
export type EngineLoad = v.InferOutput<typeof EngineLoad>;

/** The load of a process without a model. */
export const NO_LOAD: EngineLoad = { running: 0, waiting: 0, kvCells: { running: 0, cached: 0 } };

/**
 * Describes the memory of the engine process that JavaScript owns, in bytes: what V8 has reserved for its heap, and
 * buffers, which are mostly KV. The rest of the resident memory is code, weights and what onnxruntime computes with.
 */
export const EngineMemory = v.object({ heapBytes: Count, bufferBytes: Count });
export type EngineMemory = v.InferOutput<typeof EngineMemory>;

/** Messages from the engine process to the server. */
export const FromEngine = v.variant('type', [
  /** The process is ready for messages. */
  v.object({ type: v.literal('hello') }),
  /** Sent before a phase begins, because no message follows during it; sent again on progress. */
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
  v.object({
    type: v.literal('prepared'),
    id: Id,
    promptTokens: Count,
    /** Images or recordings of the request that are not encoded yet. */
    wanted: v.exactOptional(v.pipe(v.array(WantedMedia), v.maxLength(MOST_MEDIA))),
  }),
  /** The request is in the engine's queue. */
  v.object({ type: v.literal('queued'), id: Id }),
  v.object({ type: v.literal('reasoning'), id: Id, text: Text }),
  v.object({ type: v.literal('content'), id: Id, text: Text, logprobs: v.exactOptional(TokenLogprobs) }),
  v.object({
    type: v.literal('tool_call'),
    id: Id,
    index: Count,
    name: v.exactOptional(Text),
    arguments: Text,
  }),
  v.object({ type: v.literal('answers'), id: Id, answers: TaskAnswers, cut: CutNames }),
  v.object({ type: v.literal('finished'), id: Id, ...Finish, media: v.exactOptional(MediaFigures) }),
  v.object({
    type: v.literal('failed'),
    id: Id,
    error: v.object({
      code: v.picklist(ERROR_CODES),
      message: Text,
      param: v.exactOptional(Text),
      retryAfterSeconds: v.exactOptional(Count),
    }),
    /** The form of the weights that gives wrong numbers on this machine; another form may work. */
    refusedForm: v.exactOptional(WeightForm),
    /** The underlying error, for the log only. */
    detail: v.exactOptional(Text),
  }),
  /** Sent every half second, except during a step. */
  v.object({ type: v.literal('heartbeat'), rssBytes: Count, memory: EngineMemory, ...EngineLoad.entries }),
]);
export type FromEngine = v.InferOutput<typeof FromEngine>;

/** Lists the messages that answer one request, from `prepared` to the end. */
export type Reply = Extract<
  FromEngine,
  { type: 'queued' | 'reasoning' | 'content' | 'tool_call' | 'answers' | 'finished' }
>;
