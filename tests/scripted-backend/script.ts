import type { BatchAnswer, ChatEvent, ListedModel } from '../../lib/backend.ts';
import type { ErrorCode } from '../../lib/errors.ts';
import type { DownloadReport, HostDownloadEvent, LoadReport, ModelView, RemoveReport } from '../../lib/models/host.ts';

/** The script of a backend and a host. Plain JSON, so that it can be sent to a host in another process. */
export interface Script {
  /** True if the end of the server's parts never comes. */
  neverEnds?: boolean;
  /** Default: `assay/starter`, active. */
  models?: readonly (Omit<ListedModel, 'id'> & { id: string })[] | Fault;
  /** Default: `assay/starter`, loaded, on the CPU. */
  active?: ScriptedModel;
  /** All models in memory, the active one first; replaces `active`. */
  inMemory?: readonly ScriptedModel[];
  /** Memory of the models; default: the server holds one. */
  memory?: { usedBytes: number; budgetBytes: number };
  /** The answer of `runTasks`; absent parts are made up from the batch (`madeUpAnswer`). */
  tasks?: Pause &
    Partial<Omit<BatchAnswer, 'model' | 'answers'>> & {
      answers?: readonly string[];
      /** Probabilities of the options of each task; null: made up. */
      probabilities?: readonly (readonly number[] | null)[];
      /** Label masses of questions with options; absent by default. */
      labelMass?: readonly number[];
      /** Probabilities that the values of tasks with `present` are absent; default: 0.25. */
      absent?: readonly number[];
      /** True if the model abstains from each question with options. */
      abstained?: boolean;
      /** The number of values of an extraction that were reached; default: all. */
      reached?: number;
      fail?: Fault;
    };
  /** The steps of `chat`; default: one content chunk, then a plain finish. */
  chat?: readonly ChatStep[];
  load?: Pause & { fail?: Fault; report?: Partial<LoadReport> };
  unload?: Pause & { fail?: Fault };
  download?: readonly (
    | Pause
    | { fail: Fault }
    | DownloadProgress
    | { type: 'done'; report?: Partial<DownloadReport> }
  )[];
  remove?: Pause & { fail?: Fault; removed?: RemoveReport['removed']; weightsLeft?: boolean };
}

type ScriptedModel = Omit<ModelView, 'model'> & { model: string | null };
export type ChatStep = Pause | { fail: Fault } | { event: ScriptedChatEvent };
type ScriptedChatEvent = Exclude<ChatEvent, { type: 'start' }> | { type: 'start'; model: string };
type DownloadProgress = Extract<HostDownloadEvent, { type: 'progress' }>;

/** Waits before the next step; an abort ends the wait. `forever` ends only by abort. */
export interface Pause {
  waitMs?: number | 'forever';
}

/** An `AssayError`, or (`crash`) an error of any other kind. */
export type Fault =
  | { code: ErrorCode; message?: string; param?: string; retryAfterSeconds?: number }
  | { crash: string };

/** The calls to the backend and the host, in order, as JSON. */
export interface Recorded {
  call: 'listModels' | 'runTasks' | 'chat' | 'load' | 'unload' | 'download' | 'remove' | 'admit' | 'aborted';
  [detail: string]: unknown;
}
