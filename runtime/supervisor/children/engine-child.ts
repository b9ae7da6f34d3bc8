import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { AssayError } from '../../../lib/errors.ts';
import { refusal } from '../../../lib/models/refused-precision.ts';
import { environmentFor } from '../../ort-plugin/plugin-target.ts';
import { Child, type ChildEvents, childEntry } from '../../process/child.ts';
import {
  type EngineLoad,
  type EngineMemory,
  FromEngine,
  type LoadSpec,
  NO_LOAD,
  type Phase,
  type ToEngine,
} from '../../protocol/messages.ts';
import type { ProcessNeeds } from '../isolation/isolation.ts';
import { type Isolation, NO_ISOLATION } from '../isolation/isolation.ts';
import type { ModelLimits } from './model-limits.ts';

/** Settings of all processes that run or compile a model. */
export interface ProcessOptions {
  log: Logger;
  /** Resident bytes above which a process is killed. Default: `ModelLimits.memoryBytes` of its model. */
  memoryLimitBytes?: number;
  /**
   * Milliseconds without a message after which a process is killed, by phase. Default: `SILENCE_LIMITS`, and
   * `ModelLimits.openMs` for the phases `open` and `compile`.
   */
  silenceLimits?: Partial<SilenceLimits>;
  /** Isolation of the processes from the rest of the machine. Default: no isolation. */
  isolation?: Isolation;
  /** Module that the process runs; tests pass their own. */
  entry?: URL;
  /** Milliseconds between two checks of a process's memory and last message. Default: 500. */
  watchMs?: number;
}

/**
 * Holds, for each phase, the milliseconds without a message after which a process counts as hung and is killed.
 * `SilenceClock.exceeds` says how they are measured: in wall time and in processor time.
 */
export type SilenceLimits = Readonly<Record<Phase | 'start', number>>;

/** Default limits. Those of `open` and `compile` depend on the model's size (`model-limits.ts`). */
const SILENCE_LIMITS = {
  /** From the start until the process is ready for messages. */
  start: 60_000,
  /** Work on tokenizer, template or grammars: a large vocabulary takes three seconds on a busy machine. */
  text: 10_000,
  /** One step of the model, or the wait for work. */
  step: 120_000,
} as const;

/** Bytes of messages a second: several times the most that answers with the log-probabilities of 20 tokens have. */
const MAX_BYTES_A_SECOND = 64 * 2 ** 20;

/** Limit of the phase `text`, in wall time, that applies once callers wait for the process to end. */
const HURRIED_TEXT_MS = 2_000;

/** Completes "The engine process … for 10 s." for a silent process, by phase, for the log and the caller. */
const FAILED_TO: Readonly<Record<Phase | 'start', string>> = {
  start: 'did not start',
  open: 'did not open the model',
  text: "made no progress with the model's tokenizer or chat template",
  step: 'did not finish a step of the model',
  compile: 'made no progress with compiling',
};

const ENGINE_ENTRY = childEntry('../../worker/engine-child', import.meta.url);
/** Silence in milliseconds, measured as `SilenceClock.exceeds` does, after which a process counts as not responding. */
const UNRESPONSIVE_MS = 4_000;

/** Holds what one process needs besides the settings of all. */
export interface EngineChildNeeds extends Pick<ProcessNeeds, 'read' | 'write'>, Pick<LoadSpec, 'plugin'> {
  limits: ModelLimits;
}

/** Represents a message that answers another one with the same id, and ends the work that that one asked for. */
export type EngineAnswer = Extract<FromEngine, { type: 'loaded' | 'compiled' | 'described' }>;

/** Runs one engine or compile process, whose limit of silence depends on its phase. */
export class EngineChild extends Child<ToEngine, FromEngine> {
  /** JavaScript heap and buffers, as of the last heartbeat; null before the first. */
  memory: EngineMemory | null = null;
  /** Number of running and waiting jobs, and KV cells in use, as of the last heartbeat; `NO_LOAD` before the first. */
  load: EngineLoad = NO_LOAD;
  readonly #silenceLimits: SilenceLimits;
  #phase: Phase | 'start' = 'start';
  #hurried = false;
  #asked: { id: string; settled: PromiseWithResolvers<EngineAnswer>; death: (reason: string) => string } | null = null;

  constructor(
    options: ProcessOptions,
    { limits, plugin, ...files }: EngineChildNeeds,
    events: ChildEvents<FromEngine>,
  ) {
    const { openMs, memoryBytes, device } = limits;
    const { entry = ENGINE_ENTRY, log, memoryLimitBytes = memoryBytes, watchMs = 500 } = options;
    const { isolation = NO_ISOLATION, silenceLimits } = options;
    // The program of a test is outside the program's own folders.
    const read = entry === ENGINE_ENTRY ? files.read : [...files.read, dirname(fileURLToPath(entry))];
    const drivers = device !== 'CPU' || plugin !== undefined;
    const needs = { ...files, read, drivers, memoryBytes: memoryLimitBytes };
    super(
      {
        entry,
        launch: isolation.launch(needs, HEAP_FLAGS),
        environment: { ...ENGINE_MEMORY, ...environmentFor(plugin, process.env) },
        received: FromEngine,
        output: { log, name: 'engine or compile process' },
        memoryLimitBytes,
        maxBytesASecond: MAX_BYTES_A_SECOND,
        watchMs,
      },
      events,
    );
    this.#silenceLimits = { ...SILENCE_LIMITS, open: openMs, compile: openMs, ...silenceLimits };
    this.#enter('start');
  }

  /** True if the process has said nothing for some seconds although it could have. */
  get unresponsive(): boolean {
    return this.isSilent(UNRESPONSIVE_MS);
  }

  /**
   * Sends a message that a single one answers, and returns that. Rejects with the error that the process reports, and
   * with `engine_failed` if it ends.
   *
   * @param death returns the message of that error; `reason` completes the sentence "The process …"
   */
  ask(message: ToEngine, death: (reason: string) => string): Promise<EngineAnswer> {
    const settled = Promise.withResolvers<EngineAnswer>();
    this.#asked = { id: message.id, settled, death };
    this.send(message);
    return settled.promise;
  }

  protected override received(message: FromEngine): void {
    if (message.type === 'heartbeat') {
      const { type: _, rssBytes, memory, ...load } = message;
      this.rssBytes = rssBytes;
      this.memory = memory;
      this.load = load;
    }
    if (message.type === 'phase') this.#enter(message.phase);
    if (this.#asked && 'id' in message && message.id === this.#asked.id) {
      const { settled } = this.#asked;
      switch (message.type) {
        case 'loaded':
        case 'compiled':
        case 'described':
          settled.resolve(message);
          return;
        case 'failed': {
          const { error, detail, refusedPrecision } = message;
          const cause = refusedPrecision ? refusal(refusedPrecision) : detail;
          settled.reject(new AssayError(error.code, error.message, { cause }));
          return;
        }
        default:
      }
    }
    super.received(message);
  }

  protected override exited(reason: string, silent: boolean): void {
    this.#asked?.settled.reject(new AssayError('engine_failed', this.#asked.death(reason)));
    super.exited(reason, silent);
  }

  /** Ends a stuck process soon, because callers now wait for its end: silence is measured in wall time from now on. */
  hurry(): void {
    this.#hurried = true;
    this.#enter(this.#phase);
  }

  #enter(phase: Phase | 'start'): void {
    this.#phase = phase;
    const ms = this.#hurried && phase === 'text' ? HURRIED_TEXT_MS : this.#silenceLimits[phase];
    this.limitSilence({ ms, failedTo: FAILED_TO[phase], wall: this.#hurried });
  }
}

/**
 * Largest JavaScript heap of an engine process, in MiB. The heap holds mostly the tokenizer, and the largest published
 * vocabulary needs half of this. Weights and KV are outside the heap.
 */
const HEAP_MIB = 1024;

/**
 * Largest semi-space (half of V8's young generation), in MiB. 16 was Node's default for years. With 32, V8's default
 * for this heap, the process held 130 MB more after a quarter of an hour of load.
 */
const SEMI_SPACE_MIB = 16;

/** Node flags that bound the JavaScript heap of an engine process. */
export const HEAP_FLAGS = [`--max-old-space-size=${HEAP_MIB}`, `--max-semi-space-size=${SEMI_SPACE_MIB}`];

/**
 * Environment variable that configures glibc's allocator; other systems ignore it. Source: glibc manual, "Memory
 * Allocation Tunables".
 * - `hugetlb`: asks for huge pages for weights and KV, which every step reads as a whole; measured, a token takes a
 *   tenth less time.
 * - `mmap_threshold`: a block of 2 MiB or more, such as the KV of a sequence, is mapped separately and returned to the
 *   system when it is freed. Without it glibc raises the threshold to the largest block freed, and blocks of many sizes
 *   fragment its heap.
 */
export const ENGINE_MEMORY = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2097152' };
