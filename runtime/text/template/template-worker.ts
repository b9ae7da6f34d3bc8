import { workerData } from 'node:worker_threads';
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import type { RenderAnswer, RenderCall, TemplateWorkerData } from './sandboxed-jinja.ts';

/**
 * Thread that renders chat templates. It has a small heap, and templates cannot access the host: no clock, no files,
 * and only the functions in `GLOBALS`. `sandboxed-jinja.ts` starts and stops it, and waits for each answer.
 */
// A cast: the thread that started this one wrote the data.
const { port, answered } = workerData as TemplateWorkerData;

type Program = ReturnType<typeof parse>;

/** Parsed form of the last template. One is enough, because a process serves one model. */
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
    const text = String(interpreterOf(env).run(last.program).value);
    return text.length > output ? { error: 'the template writes too much' } : { text };
  } catch (error) {
    // A cast: the template engine throws errors only.
    return { error: (error as Error).message };
  }
}

/**
 * Returns an interpreter that refuses values that grow without bound: for a list that doubles, V8 reserves a gigabyte
 * at once, before it checks the limit of the heap. A property whose name is not a string is undefined, as in Jinja2,
 * although the package throws: Hermes 3 and Command R+ look up the type of a schema that states none.
 */
function interpreterOf(env: Environment): Interpreter {
  const interpreter = new Interpreter(env);
  // A cast, because the package's types of its classes do not resolve.
  const evaluate: (...args: unknown[]) => { value: unknown } = interpreter.evaluate.bind(interpreter);
  interpreter.evaluate = (...args: unknown[]) => {
    const result = orUndefined(() => evaluate(...args), env);
    const { value } = result;
    if (Array.isArray(value) && value.length > MAX_ITEMS) throw new Error('the template makes too long a list');
    if (typeof value === 'string' && value.length > MAX_CHARACTERS) {
      throw new Error('the template makes too long a text');
    }
    return result;
  };
  return interpreter;
}

function orUndefined<T>(work: () => T, env: Environment): T {
  try {
    return work();
  } catch (error) {
    // A cast: the template engine throws errors only.
    if (!(error as Error).message.startsWith('Cannot access property with non-string')) throw error;
    return env.lookupVariable('a name that no variable has');
  }
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

/**
 * Formats a fixed date, because a prompt must be the same every day: the date to which Llama 3.2's template falls back.
 */
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
