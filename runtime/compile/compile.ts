import type { Device } from '../../lib/backend.ts';
import type { Manifest } from './manifest.ts';

/** `auto`: what suits the device; `int8`, `int4`, `float`: that form; `keep`: the published weights as they are. */
export const PRECISIONS = ['auto', 'int8', 'int4', 'float', 'keep'] as const;
export type Precision = (typeof PRECISIONS)[number];

export interface CompileOptions {
  /** Folder of the downloaded model, as published. Read only. */
  source: string;
  /** Empty or absent folder for the result. On an error what was written stays for the caller to remove. */
  target: string;
  device: Device;
  precision: Precision;
  maxPromptLen: number;
  /** Progress: `done` of `total` bytes of weights. */
  onStep?(step: CompileStep): void;
  signal?: AbortSignal;
}

export interface CompileStep {
  step: 'reading' | 'weights' | 'graph';
  done: number;
  total: number;
}

export type CompileModel = (options: CompileOptions) => Promise<Manifest>;
