import { stat } from 'node:fs/promises';
import { INTERNAL_MESSAGE } from '../../../handlers/error-response.ts';
import { systemClock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { ApiKey, KeyStore } from '../../../lib/keys.ts';
import { memoryQuota } from '../../../lib/quota.ts';
import { serverConfig } from '../config.ts';
import { UsageError } from '../usage-error.ts';
import { type Connection, requestOf, successOf } from './request.ts';

/** Key of the requests of the command's own user. */
const OWNER: ApiKey = { name: 'owner', models: ['*'], scopes: ['admin'] };

/**
 * Creates the server's app inside this process and returns a connection to it, without a port. Imports the app only
 * when called, because the app is most of the program. Closing the connection ends the app's processes.
 *
 * @param home folder with models and keys, which need not exist
 * @param keys keys that requests may name (`RequestOptions.key`), with their rights and quotas. By default all requests
 *   have all rights, because they come from the user of the command
 * @throws UsageError if `home` is anything but a folder, or an `ASSAY_*` variable is invalid
 */
export async function connectInProcess(
  home: string,
  keys: KeyStore = { find: async () => OWNER },
): Promise<Connection> {
  const [{ createApp }, { compose }, { createLog }] = await Promise.all([
    import('../../../handlers/app.ts'),
    import('../compose.ts'),
    import('../log.ts'),
  ]);
  const config = serverConfig({ home }, process.env);
  const usable = await stat(config.home).then(
    (found) => found.isDirectory(),
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
  if (!usable) throw new UsageError(`${config.home} is not a folder. Choose another with --home or ASSAY_HOME.`);
  const parts = await compose(config, createLog(process.env.ASSAY_DEBUG ? 'debug' : 'silent'));
  const questions = { confidence: config.confidence, abstainBelow: config.abstainBelow };
  const app = createApp({ ...parts, keys, questions, quota: memoryQuota(systemClock) });
  return {
    url: null,
    request: async (path, options = {}) => {
      const request = new Request(`http://localhost${path}`, requestOf(options, 'owner'));
      return successOf(await app.fetch(request)).catch((error: unknown) => {
        throw withoutServer(error);
      });
    },
    close: () => parts.close(),
  };
}

/**
 * Returns another error in place of one that refers to the server's log, because this process keeps no log. Returns any
 * other error unchanged.
 */
export function withoutServer(error: unknown): unknown {
  if (!(error instanceof AssayError) || error.message !== INTERNAL_MESSAGE) return error;
  const message = 'An internal error occurred. Run the command again with ASSAY_DEBUG=1 to see the cause.';
  return new AssayError('internal_error', message, { cause: error });
}
