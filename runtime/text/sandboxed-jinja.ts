import { createContext, Script } from 'node:vm';
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';

/** A template that refuses its input (`raise_exception`), breaks, or does not end. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

export interface JinjaLimits {
  /** Milliseconds that one rendering may take. */
  timeMs: number;
  /** Characters that one rendering may write. */
  output: number;
}

const LIMITS: JinjaLimits = { timeMs: 2_000, output: 4 * 1024 * 1024 };
const MAX_SOURCE = 1024 * 1024;
const MAX_RANGE = 100_000;

/**
 * Renders a stranger's template with nothing of the host in reach: no clock, no files, no functions but these. The date is
 * fixed, so that a prompt is the same tomorrow. Throws `TemplateError`.
 */
export function compileJinja(source: string, limits = LIMITS): (values: Record<string, unknown>) => string {
  if (source.length > MAX_SOURCE) throw new TemplateError('the template is too large');
  const program = guarded(limits, () => parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })));
  return (values) =>
    guarded(limits, () => {
      const env = new Environment();
      for (const [name, value] of Object.entries({ ...GLOBALS, ...values })) env.set(name, value);
      const output = String(new Interpreter(env).run(program).value);
      if (output.length > limits.output) throw new TemplateError('the template writes too much');
      return output;
    });
}

const GLOBALS = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  raise_exception: (message: unknown) => {
    throw new TemplateError(String(message));
  },
  range,
  strftime_now: fixedDate,
};

/** The day that Llama 3.2's template falls back to. */
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
  return format.replace(/%([YmdbBHM%])/gu, (_, part: string) => parts[part]!);
}

function range(first: number, end?: number, step = 1): number[] {
  const [start, stop] = end === undefined ? [0, first] : [first, end];
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (!(length <= MAX_RANGE)) throw new TemplateError('the template counts too far');
  return Array.from({ length }, (_, i) => start + i * step);
}

const sandbox = createContext({ work: undefined as unknown });
const call = new Script('work()');

/** Runs `work` under V8's own deadline, which also ends loops and regular expressions that never return. */
function guarded<T>({ timeMs }: JinjaLimits, work: () => T): T {
  sandbox.work = work;
  try {
    return call.runInContext(sandbox, { timeout: timeMs }) as T;
  } catch (error) {
    if (error instanceof TemplateError) throw error;
    const timedOut = (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    throw new TemplateError(timedOut ? 'the template takes too long' : (error as Error).message, { cause: error });
  } finally {
    sandbox.work = undefined;
  }
}
