import { AssayError } from '../../lib/errors.ts';
import { refusal } from '../../lib/refused-form.ts';
import type { LoadSpec, ModelInfo } from '../protocol/messages.ts';
import { Child, type ChildEvents, type ChildOptions } from './child.ts';

/** Id of the load. Requests have numbers as ids. */
const ID = 'load!';

/**
 * Starts a process and loads a model in it. `events` receives the messages of requests, and the end of the process.
 * `loaded` rejects with `engine_failed`, or with the error of the process, which still runs then.
 */
export function loadInChild(
  options: ChildOptions,
  spec: LoadSpec,
  events: ChildEvents,
): { child: Child; loaded: Promise<ModelInfo> } {
  const loaded = Promise.withResolvers<ModelInfo>();
  const child = new Child(options, {
    message(message) {
      if (message.type === 'loaded') loaded.resolve(message.info);
      else if (message.type === 'failed' && message.id === ID) {
        const { error, detail, refusedForm } = message;
        const cause = refusedForm ? refusal(refusedForm) : detail;
        loaded.reject(new AssayError(error.code, error.message, { cause }));
      } else events.message(message);
    },
    exit(reason) {
      loaded.reject(new AssayError('engine_failed', `The engine process ${reason} while it loaded the model.`));
      events.exit(reason);
    },
  });
  child.send({ type: 'load', id: ID, spec });
  return { child, loaded: loaded.promise };
}
