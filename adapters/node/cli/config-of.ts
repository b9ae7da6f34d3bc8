import { type ServerConfig, type ServerFlags, serverConfig } from '../config.ts';
import { UsageError } from '../usage-error.ts';

/** The configuration that flags and environment give. What is wrong with them is the caller's mistake: `UsageError`. */
export function configOf(flags: ServerFlags): ServerConfig {
  try {
    return serverConfig(flags, process.env);
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
}
