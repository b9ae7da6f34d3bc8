import { createApp } from '../../../handlers/app.ts';
import { PRIORITY_HEADER } from '../../../handlers/call.ts';
import type { AppDeps } from '../../../handlers/context.ts';
import type { ApiKey } from '../../../lib/keys.ts';
import type { AnswerLine } from './batch-service.ts';

/** Maximum number of owners whose apps are kept. */
const MOST_APPS = 64;

/**
 * Returns a function that answers the requests of batches with the same handlers as those of clients. They have the
 * rights and quotas that the owner's key has at that time, and the priority `batch`.
 */
export function answerAsOwner(deps: AppDeps, keyNamed: (name: string) => Promise<ApiKey | null>): AnswerLine {
  const apps = new Map<string, ReturnType<typeof createApp>>();
  const appOf = (owner: string) => {
    const known = apps.get(owner);
    if (known) return known;
    if (apps.size >= MOST_APPS) apps.clear();
    // No secret is stored, so an app of the owner takes any.
    const { guard: _, ...rest } = deps;
    const app = createApp({ ...rest, keyForModels: true, keys: { find: () => keyNamed(owner) } });
    apps.set(owner, app);
    return app;
  };
  return async (owner, endpoint, body, requestId, signal) => {
    const headers = {
      authorization: 'Bearer batch',
      'content-type': 'application/json',
      'x-request-id': requestId,
      [PRIORITY_HEADER]: 'batch',
    };
    return appOf(owner).fetch(new Request(`http://127.0.0.1${endpoint}`, { method: 'POST', headers, body, signal }));
  };
}
