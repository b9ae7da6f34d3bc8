import { AssayError } from '../../lib/errors.ts';

/** Returns the error for a load or download that the end of the server cuts off. */
export function shuttingDown(): AssayError {
  return new AssayError('internal_error', 'The server is shutting down. Start it again, then repeat the request.');
}
