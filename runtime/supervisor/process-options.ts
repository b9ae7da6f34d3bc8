import type { Logger } from 'pino';
import type { LoadSpec } from '../protocol/messages.ts';
import { type ChildOptions, ENGINE_ENTRY, PATIENCE, type Patience } from './child.ts';
import { type Isolation, NO_ISOLATION } from './isolation/isolation.ts';
import type { ProcessNeeds } from './isolation/process-needs.ts';
import type { ModelLimits } from './model-limits.ts';

/** Sets the bounds of every process that runs or compiles a model. */
export interface ProcessOptions {
  log: Logger;
  /** Resident bytes above which a process is killed. Default: what its model can need (`model-limits.ts`). */
  memoryLimitBytes?: number;
  /** Milliseconds that a process may be silent in each phase. Default: `PATIENCE`, and by the size of its model. */
  patience?: Partial<Patience>;
  /** Isolation of the processes from the rest of the machine. Default: none. */
  isolation?: Isolation;
  /** Entry point of the process; tests pass their own. */
  entry?: URL;
  /** Milliseconds between two checks of memory and silence. Default: 500. */
  watchMs?: number;
}

/** Returns the options of the process for one model, which may reach only these files. */
export function childOptions(
  options: ProcessOptions,
  limits: ModelLimits,
  { plugin }: Pick<LoadSpec, 'plugin'>,
  files: Pick<ProcessNeeds, 'read' | 'write'>,
): ChildOptions {
  const { openMs, memoryBytes, device } = limits;
  const { entry = ENGINE_ENTRY, log, memoryLimitBytes = memoryBytes, watchMs = 500, patience } = options;
  const { isolation = NO_ISOLATION } = options;
  const drivers = device !== 'CPU' || plugin !== undefined;
  return {
    entry,
    log,
    memoryLimitBytes,
    watchMs,
    patience: { ...PATIENCE, open: openMs, compile: openMs, ...patience },
    launch: (nodeFlags) => isolation.launch({ ...files, drivers, memoryBytes: memoryLimitBytes }, nodeFlags),
  };
}
