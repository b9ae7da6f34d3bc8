import { workerData } from 'node:worker_threads';
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import type { RenderAnswer, RenderCall, TemplateWorkerData } from './sandboxed-jinja.ts';

/*
 * The thread that renders chat templates. It has a small heap of its own, and templates reach nothing of the host: no
 * clock, no files, no functions but these. `sandboxed-jinja.ts` starts and stops it, and waits for each answer.
 */
// The thread that started this one wrote it.
const { port, answered } = workerData as TemplateWorkerData;

type Program = ReturnType<typeof parse>;

/** The program of the last template. One is enough, as a process serves one model. */
let last: { source: string; program: Program } | null = null;

port.on('message', (call: RenderCall) => answer(work(call)));
answer({ text: '' });

function answer(message: RenderAnswer): void {
  port.postMessage(message);
  Atomics.store(answered, 0, 1);
  Atomics.notify(answered, 0);
}

function work({ source, values, output }: RenderCall): RenderAnswer {
  try {
    if (last?.source !== source) {
      last = { source, program: parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })) };
    }
    if (values === null) return { text: '' };
    const env = new Environment();
    for (const [name, value] of Object.entries({ ...GLOBALS, ...values })) env.set(name, value);
    const text = String(boundedInterpreter(env).run(last.program).value);
    return text.length > output ? { error: 'the template writes too much' } : { text };
  } catch (error) {
    // The template engine throws errors only.
    return { error: (error as Error).message };
  }
}

/**
 * Returns an interpreter that refuses values which grow without end: a list that doubles asks for a gigabyte at once,
 * and V8 grants that before it looks at the limit of the heap.
 */
function boundedInterpreter(env: Environment): Interpreter {
  const interpreter = new Interpreter(env);
  // The package's types of its classes do not resolve.
  const evaluate: (...args: unknown[]) => { value: unknown } = interpreter.evaluate.bind(interpreter);
  interpreter.evaluate = (...args: unknown[]) => {
    const result = evaluate(...args);
    const { value } = result;
    if (Array.isArray(value) && value.length > MAX_ITEMS) throw new Error('the template makes too long a list');
    if (typeof value === 'string' && value.length > MAX_CHARACTERS) {
      throw new Error('the template makes too long a text');
    }
    return result;
  };
  return interpreter;
}

const MAX_ITEMS = 100_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;

const GLOBALS = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  raise_exception: (message: unknown) => {
    throw new Error(String(message));
  },
  range,
  strftime_now: fixedDate,
};

/** Formats the date that Llama 3.2's template falls back to, so that a prompt is the same every day. */
function fixedDate(format: string): string {
  const parts: Record<string, string> = {
    Y: '2024',
    m: '07',
    d: '26',
    b: 'Jul',
    B: 'July',
    H: '00',
    M: '00',
    '%': '%',
  };
  return format.replace(/%([YmdbBHM%])/gu, (_, part: string) => parts[part] ?? '');
}

function range(first: number, end?: number, step = 1): number[] {
  const [start, stop] = end === undefined ? [0, first] : [first, end];
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (!(length <= MAX_ITEMS)) throw new Error('the template counts too far');
  return Array.from({ length }, (_, i) => start + i * step);
}
