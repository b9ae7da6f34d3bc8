import type { Program } from '../systems/start.ts';
import type { Settings } from '../systems/system.ts';

export interface Contender {
  /** Name that the flag `--systems` accepts. */
  id: string;
  /** Name that tables show. */
  label: string;
  program: Program;
  weights: Settings['weights'];
  mode?: string;
  /** Largest number of tasks to measure. Larger ones would take minutes, because the time grows in proportion. */
  most?: number;
}

const WEIGHTS = [
  { weights: 'int8', bits: 8, gguf: 'Q8_0' },
  { weights: 'int4', bits: 4, gguf: 'Q4_0' },
] as const;

/** Lists the systems that run workload W. Systems whose weights have the same number of bits are compared. */
export const CONTENDERS: readonly Contender[] = WEIGHTS.flatMap(({ weights, bits, gguf }): Contender[] => [
  { id: `assay-${weights}`, label: `Assay, ${bits} bits`, program: 'assay', weights },
  {
    id: `llama-sequence-${weights}`,
    label: `node-llama-cpp, ${gguf}, one sequence`,
    program: 'node-llama-cpp',
    weights,
    mode: 'sequence',
  },
  {
    id: `llama-copies-${weights}`,
    label: `node-llama-cpp, ${gguf}, copied sequences`,
    program: 'node-llama-cpp',
    weights,
    mode: 'copies',
  },
  {
    id: `transformers-${weights}`,
    label: `transformers.js, ${bits} bits`,
    program: 'transformers.js',
    weights,
    most: 4,
  },
]);

/** Lists the systems that answer questions with options, such as node-llama-cpp's `decide`. */
export const DECIDERS: readonly Contender[] = WEIGHTS.flatMap(({ weights, bits, gguf }): Contender[] => [
  { id: `llama-decide-${weights}`, label: `node-llama-cpp, ${gguf}, decide()`, program: 'node-llama-cpp', weights },
  { id: `assay-${weights}`, label: `Assay, ${bits} bits, options`, program: 'assay', weights },
]);
