import { CommanderError } from 'commander';
import { AssayError, type ErrorCode } from '../../../lib/errors.ts';
import { UsageError } from '../usage-error.ts';

/** Exit codes (docs/cli.md). 1 means that the command worked and its answer is no, as with `decide --expect`. */
export const EXIT = {
  ok: 0,
  no: 1,
  usage: 2,
  noServer: 3,
  notFound: 4,
  conflict: 5,
  denied: 6,
  hub: 7,
  diskFull: 8,
  failed: 9,
  busy: 10,
  other: 70,
  interrupted: 130,
} as const;

/** Reports that the user has stopped a command that can be continued. */
export class InterruptedError extends Error {}

/** Reports that a command needs a server and none answers, or that the connection to it broke. */
export class NoServerError extends Error {}

const BY_CODE: Partial<Record<ErrorCode, number>> = {
  missing_api_key: EXIT.denied,
  invalid_api_key: EXIT.denied,
  model_not_allowed: EXIT.denied,
  forbidden_origin: EXIT.denied,
  model_not_found: EXIT.notFound,
  model_not_loaded: EXIT.notFound,
  not_downloaded: EXIT.notFound,
  model_in_use: EXIT.conflict,
  memory_full: EXIT.conflict,
  operation_in_progress: EXIT.conflict,
  rate_limited: EXIT.busy,
  overloaded: EXIT.busy,
  engine_failed: EXIT.failed,
  backend_unreachable: EXIT.failed,
  timeout: EXIT.failed,
  internal_error: EXIT.failed,
  hub_unreachable: EXIT.hub,
  disk_full: EXIT.diskFull,
};

/** Returns the exit code for an error that a command threw; 70 (`EXIT.other`) for an unexpected one. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof NoServerError) return EXIT.noServer;
  if (error instanceof InterruptedError) return EXIT.interrupted;
  if (error instanceof UsageError) return EXIT.usage;
  // All other codes mean that the request itself is invalid.
  if (error instanceof AssayError) return BY_CODE[error.code] ?? EXIT.usage;
  return EXIT.other;
}
