import { AssayError } from '../../lib/errors.ts';

/** Returns the `internal_error` of a load or download that the shutdown of the server ends. */
export function shuttingDown(): AssayError {
  return new AssayError('internal_error', 'The server is shutting down. Start it again, then repeat the request.');
}
