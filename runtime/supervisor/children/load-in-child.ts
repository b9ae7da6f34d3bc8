import { AssayError } from '../../../lib/errors.ts';
import { refusal } from '../../../lib/refused-form.ts';
import type { LoadSpec, ModelInfo } from '../../protocol/messages.ts';
import { Child, type ChildEvents, type ChildOptions } from './child.ts';

/** Message id of the load, which no call can have: `CallsInFlight` numbers calls in base 36. */
const ID = 'load!';
const AFTER_DEATH = 'Try again. If that fails too, load another model; the log has the details.';

/**
 * Starts an engine process and loads a model in it.
 *
 * @param events receives all messages except those about the load, and the end of the process
 * @returns the process, and a promise of the facts about the loaded model. It rejects with `engine_failed` if the
 *   process ends, or with the error that the process reports; in the second case the process is still running
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
      loaded.reject(
        new AssayError('engine_failed', `The engine process ${reason} while it loaded the model. ${AFTER_DEATH}`),
      );
      events.exit(reason);
    },
  });
  child.send({ type: 'load', id: ID, spec });
  return { child, loaded: loaded.promise };
}
