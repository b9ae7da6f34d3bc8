import { Postponed, withAccepted, withinSteps } from '../lib/grammar/fuel.ts';
import type { AppContext } from './context.ts';

/** Steps of compiling that one request may take in the thread that serves all requests: 10 to 20 ms. */
const STEPS_HERE = 10_000;

/**
 * Does the work of a request that compiles schemas: here if it is short, and otherwise after the app's `BodyChecker`
 * has found the schemas right. Without a checker, all is done here.
 *
 * @param text JSON text of the body
 */
export async function compiled<T>(c: AppContext, text: string | undefined, work: () => T): Promise<T> {
  const [checker, path] = [c.get('checker'), c.get('route')];
  if (!checker || text === undefined || path === undefined) return work();
  try {
    return withinSteps(STEPS_HERE, work);
  } catch (error) {
    if (!(error instanceof Postponed)) throw error;
  }
  await checker.check({ path, text }, c.get('key')?.name ?? '', c.req.raw.signal);
  return withAccepted(work);
}
