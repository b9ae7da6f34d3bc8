import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { environmentFor } from '../../ort-plugin/plugin-target.ts';
import type { LoadSpec } from '../../protocol/messages.ts';
import { type Isolation, NO_ISOLATION } from '../isolation/isolation.ts';
import type { ProcessNeeds } from '../isolation/process-needs.ts';
import { type ChildOptions, ENGINE_ENTRY } from './child.ts';
import type { ModelLimits } from './model-limits.ts';
import { SILENCE_LIMITS, type SilenceLimits } from './silence-limits.ts';

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
 * Returns the options of the process that loads or compiles one model. `memoryLimitBytes` and `silenceLimits` of
 * `options` replace what `limits` says.
 *
 * @param files the files and folders that the isolation lets the process read and write, besides the program
 */
export function childOptions(
  options: ProcessOptions,
  limits: ModelLimits,
  { plugin }: Pick<LoadSpec, 'plugin'>,
  files: Pick<ProcessNeeds, 'read' | 'write'>,
): ChildOptions {
  const { openMs, memoryBytes, device } = limits;
  const { entry = ENGINE_ENTRY, log, memoryLimitBytes = memoryBytes, watchMs = 500, silenceLimits } = options;
  const { isolation = NO_ISOLATION } = options;
  // The program of a test is outside the program's own folders.
  const read = entry === ENGINE_ENTRY ? files.read : [...files.read, dirname(fileURLToPath(entry))];
  const drivers = device !== 'CPU' || plugin !== undefined;
  return {
    entry,
    log,
    memoryLimitBytes,
    watchMs,
    silenceLimits: { ...SILENCE_LIMITS, open: openMs, compile: openMs, ...silenceLimits },
    environment: environmentFor(plugin, process.env),
    launch: (nodeFlags) => isolation.launch({ ...files, read, drivers, memoryBytes: memoryLimitBytes }, nodeFlags),
  };
}
