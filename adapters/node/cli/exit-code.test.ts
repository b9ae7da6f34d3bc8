import { CommanderError } from 'commander';
import { expect, it } from 'vitest';
import { AssayError, ERROR_CODES, type ErrorCode } from '../../../lib/errors.ts';
import { UsageError } from '../usage-error.ts';
import { EXIT, exitCodeOf, NoServerError } from './exit-code.ts';

it.each<[unknown, number]>([
  [new CommanderError(0, 'commander.version', ''), 0],
  [new CommanderError(1, 'commander.unknownOption', ''), 2],
  [new UsageError('x'), 2],
  [new NoServerError('x'), 3],
  [new Error('x'), 70],
  ['x', 70],
])('%s: %i', (error, code) => {
  expect(exitCodeOf(error)).toBe(code);
});

const EXPECTED: Partial<Record<ErrorCode, number>> = {
  model_not_found: 4,
  model_not_loaded: 4,
  not_downloaded: 4,
  model_in_use: 5,
  operation_in_progress: 5,
  missing_api_key: 6,
  invalid_api_key: 6,
  model_not_allowed: 6,
  forbidden_origin: 6,
  hub_unreachable: 7,
  disk_full: 8,
  memory_full: 5,
  engine_failed: 9,
  backend_unreachable: 9,
  timeout: 9,
  internal_error: 9,
  rate_limited: 10,
  overloaded: 10,
};

it.each(ERROR_CODES)('%s has its code; what is left is a mistake in the request', (code) => {
  expect(exitCodeOf(new AssayError(code, 'x'))).toBe(EXPECTED[code] ?? EXIT.usage);
});
