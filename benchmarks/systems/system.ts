import type { ShapeName } from '../models/shapes.ts';
import type { Cost } from './measure.ts';

/** Represents a system that runs a random model in a process of its own (`child.ts`). */
export interface System {
  /**
   * Runs tasks on a new context (`cold`), then other tasks on the same context, which may now be cached (`cached`).
   * Each task is answered independently.
   */
  branches(work: BranchesWork): Promise<{ cold: Cost; cached: Cost }>;
  /** Answers questions with three options each, about one context. */
  choices?(work: ChoicesWork): Promise<Cost & { promptTokens: number }>;
  /** Runs a prompt of `tokens` tokens up to its first generated token. */
  prefill(work: PrefillWork): Promise<Cost>;
  /** Decodes `tokens` tokens, one after another, after a cached context of `context` tokens. */
  decode(work: DecodeWork): Promise<Cost>;
  /** Answers unrelated requests that arrive at the same time. */
  crowd?(work: CrowdWork): Promise<Cost>;
  /** Measures the time between two tokens of several chats, alone and while a long prompt is read. */
  gaps?(work: GapsWork): Promise<{ alone: Gaps; beside: Gaps }>;
}

export interface BranchesWork {
  tasks: number;
  /** Seed of the random tokens. Use a new one for tokens that no cache has. */
  seed: number;
}

export interface ChoicesWork {
  questions: number;
  seed: number;
  /** Number of tokens of the context. A system with its own prompts reports its own number. */
  context: number;
  /** Number of tokens of one question. */
  question: number;
}

export interface PrefillWork {
  tokens: number;
  seed: number;
}

export interface DecodeWork {
  context: number;
  tokens: number;
  seed: number;
}

/** Describes a request that reads `prompt` tokens and writes `answer` tokens. */
export interface CrowdRequest {
  prompt: number;
  answer: number;
  seed: number;
}

export interface CrowdWork {
  requests: readonly CrowdRequest[];
}

export interface GapsWork {
  chats: number;
  /** Number of tokens of the long prompt. */
  prompt: number;
}

/** Holds the milliseconds between two tokens of a chat: the median, and the 99th percentile. */
export interface Gaps {
  p50: number;
  p99: number;
  /** Milliseconds until the long prompt was read; 0 if there was none. */
  promptMs: number;
}

export interface Settings {
  shape: ShapeName;
  weights: 'int8' | 'int4';
  threads: number;
  /** Mode in which the program does the work, if it has several. */
  mode?: string;
  /** Number of sequences in one run of Assay's engine; if absent, the compiler's default. */
  slots?: number;
}

/** Starts a system. Each system's module exports such a function as `open`. */
export type OpenSystem = (settings: Settings) => Promise<System>;

export type Call = {
  [Name in keyof System]-?: [name: Name, work: Parameters<NonNullable<System[Name]>>[0]];
}[keyof System];
export type Reply = { result: unknown } | { error: string };
