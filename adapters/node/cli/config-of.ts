import { messageOf } from '../../../lib/errors.ts';
import { type ServerConfig, type ServerFlags, serverConfig } from '../config.ts';
import { UsageError } from '../usage-error.ts';

/** Returns the server's configuration from flags and environment. Throws `UsageError` for invalid values. */
export function configOf(flags: ServerFlags): ServerConfig {
  try {
    return serverConfig(flags, process.env);
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error });
  }
}
