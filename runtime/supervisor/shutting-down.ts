import { AssayError } from '../../lib/errors.ts';

/** Returns the `internal_error` of a load or download that the shutdown of the server ends. */
export function shuttingDown(): AssayError {
  return new AssayError('internal_error', 'The server is shutting down. Start it again, then repeat the request.');
}

/** Returns the `engine_failed` of a request that the shutdown of the server ends. */
export function endedByShutdown(): AssayError {
  const message =
    'The server is shutting down and has ended this request. Send it again; another server may answer it.';
  return new AssayError('engine_failed', message);
}
