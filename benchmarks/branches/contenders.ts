import type { Program } from '../systems/start.ts';
import type { Settings } from '../systems/system.ts';

export interface Contender {
  /** Name for the flag `--systems`. */
  id: string;
  /** Name in tables. */
  label: string;
  program: Program;
  weights: Settings['weights'];
  mode?: string;
  /** Largest number of tasks that is measured; more would take minutes, because the time grows in proportion. */
  most?: number;
}

const WEIGHTS = [
  { weights: 'int8', bits: 8, gguf: 'Q8_0' },
  { weights: 'int4', bits: 4, gguf: 'Q4_0' },
] as const;

/** The contenders of workload W. Those with weights of the same number of bits are compared. */
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

/** The contenders for questions with options, among them `decide` of node-llama-cpp. */
export const DECIDERS: readonly Contender[] = WEIGHTS.flatMap(({ weights, bits, gguf }): Contender[] => [
  { id: `llama-decide-${weights}`, label: `node-llama-cpp, ${gguf}, decide()`, program: 'node-llama-cpp', weights },
  { id: `assay-${weights}`, label: `Assay, ${bits} bits, options`, program: 'assay', weights },
]);
