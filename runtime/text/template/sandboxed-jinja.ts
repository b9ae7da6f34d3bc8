import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { atOnce } from '../../../lib/at-once.ts';

/** Reports that a template refuses its input (`raise_exception`), fails, does not end, or uses too much memory. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
  /** True if rendering exceeded a limit of time or memory. The same template may succeed another time. */
  readonly ofLimits: boolean;

  constructor(message: string, ofLimits = false) {
    super(message);
    this.ofLimits = ofLimits;
  }
}

export interface JinjaLimits {
  /** Timeout of one rendering in milliseconds. */
  timeMs: number;
  /** Maximum characters in the result of one rendering. */
  output: number;
}

const LIMITS: JinjaLimits = { timeMs: 2_000, output: 4 * 1024 * 1024 };
const MAX_SOURCE = 1024 * 1024;

/** Heap limits of the rendering thread, in MiB. The templates of published models need about 1 MiB. */
const HEAP_MB = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

/** Timeout for the start of the thread in milliseconds, long enough for a busy machine. */
const START_MS = 30_000;

/** Describes a request to the rendering thread. If `values` is null, the template is only parsed. */
export interface RenderCall {
  source: string;
  values: Readonly<Record<string, unknown>> | null;
  /** Maximum characters in the result (`JinjaLimits.output`). */
  output: number;
}

export type RenderAnswer = { text: string } | { error: string };

export interface TemplateWorkerData {
  port: MessagePort;
  /** Shared flag: 1 while an answer waits in the port, otherwise 0. */
  answered: Int32Array<SharedArrayBuffer>;
}

/** Milliseconds that one look at the rendering thread waits for its answer; between them, other work may run. */
const LOOK_MS = 4;

/**
 * Parses an untrusted template. Returns a function that renders it in a thread with a small heap and a time limit, and
 * yields while the thread works, so that other work may run. If a template exceeds a limit, its thread is ended, and
 * the next rendering starts a new one. Parsing and rendering throw `TemplateError` if the template is not valid, fails,
 * refuses its input or exceeds a limit.
 */
export function compileJinja(
  source: string,
  limits = LIMITS,
): (values: Record<string, unknown>) => Generator<void, string> {
  if (source.length > MAX_SOURCE) throw new TemplateError('the template is too large');
  const { output, timeMs } = limits;
  atOnce(render({ source, values: null, output }, timeMs));
  return (values) => render({ source, values, output }, timeMs);
}

/** Renders a template in the thread, after the rendering that is under way, whose caller may have left. */
function* render(call: RenderCall, timeMs: number): Generator<void, string> {
  while (thread?.busy) {
    look(thread);
    if (thread?.busy) yield;
  }
  thread ??= new TemplateThread();
  const own = thread;
  const rendering = own.begin(call, timeMs);
  while (rendering.answer === undefined) {
    look(own);
    if (rendering.answer === undefined) yield;
  }
  const { answer } = rendering;
  if (!answer) throw new TemplateError('the template takes too long or too much memory', true);
  if ('error' in answer) throw new TemplateError(answer.error);
  return answer.text;
}

/** Waits a little for the answer of a thread, and ends one that takes too long. */
function look(one: TemplateThread): void {
  if (one.look() !== null) return;
  one.end();
  if (thread === one) thread = undefined;
}

/** The process's only rendering thread; undefined if none is running. */
let thread: TemplateThread | undefined;

const ENTRY = new URL(`./template-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Describes a rendering: when it takes too long, and its answer, null if it took too long. */
interface Rendering {
  until: number;
  answer: RenderAnswer | null | undefined;
}

class TemplateThread {
  readonly #answered = new Int32Array(new SharedArrayBuffer(4));
  readonly #port: MessagePort;
  readonly #worker: Worker;
  #current: Rendering | null = null;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData: TemplateWorkerData = { port: port2, answered: this.#answered };
    this.#worker = new Worker(ENTRY, {
      workerData,
      transferList: [port2],
      resourceLimits: HEAP_MB,
      env: {},
      execArgv: [],
    });
    this.#worker.unref();
    // A thread that runs out of memory never answers, so its error is ignored and the wait ends with the timeout.
    this.#worker.on('error', () => {});
    if (!this.#wait(START_MS)) throw new Error('the thread for templates did not start');
  }

  /** True while a rendering is under way. */
  get busy(): boolean {
    return this.#current !== null;
  }

  /** Sends a request to a thread that is not busy. The result gets its answer in a later `look`. */
  begin(call: RenderCall, timeMs: number): Rendering {
    this.#port.postMessage(call);
    this.#current = { until: performance.now() + timeMs, answer: undefined };
    return this.#current;
  }

  /** Waits at most `LOOK_MS` for the answer. Returns null if the rendering takes too long. */
  look(): RenderAnswer | null | undefined {
    const current = this.#current;
    if (!current) return undefined;
    const left = current.until - performance.now();
    const answer = this.#wait(Math.max(0, Math.min(LOOK_MS, left)));
    if (!answer && left > LOOK_MS) return undefined;
    current.answer = answer;
    this.#current = null;
    return answer;
  }

  end(): void {
    this.#port.close();
    void this.#worker.terminate();
  }

  #wait(timeMs: number): RenderAnswer | null {
    if (Atomics.wait(this.#answered, 0, 0, timeMs) === 'timed-out') return null;
    Atomics.store(this.#answered, 0, 0);
    return receiveMessageOnPort(this.#port)?.message ?? null;
  }
}
