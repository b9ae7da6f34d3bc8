import { AssayError } from '../../../lib/errors.ts';
import type { CompileReport, CompileSpec } from '../../protocol/messages.ts';
import type { CompileCall } from '../engine-process.ts';
import { Child, type ChildOptions } from './child.ts';

const ID = 'compile';
const AFTER_DEATH =
  'Try again. If that fails too, load another model, or other files of this one; the log has the details.';
const CANCELLED = 'The compile was cancelled. Load or compile the model again to start over.';

/**
 * Compiles a model in a new process, which has ended when the promise settles. Throws the error that the process
 * reports, and `engine_failed` if it dies. An abort of `call.signal` kills it, and throws `engine_failed` too.
 */
export async function compileInChild(
  options: ChildOptions,
  spec: CompileSpec,
  call: CompileCall,
): Promise<CompileReport> {
  const done = Promise.withResolvers<CompileReport>();
  const gone = Promise.withResolvers<void>();
  const child = new Child(options, {
    message(message) {
      if (message.type === 'progress')
        call.onProgress?.({ step: message.step, done: message.done, total: message.total });
      else if (message.type === 'compiled') done.resolve(message.report);
      else if (message.type === 'failed') {
        done.reject(new AssayError(message.error.code, message.error.message, { cause: message.detail }));
      }
    },
    exit(reason) {
      done.reject(new AssayError('engine_failed', `The compile process ${reason}. ${AFTER_DEATH}`));
      gone.resolve();
    },
  });
  const abort = () => {
    done.reject(new AssayError('engine_failed', CANCELLED));
    child.kill('was cancelled');
  };
  if (call.signal?.aborted) abort();
  call.signal?.addEventListener('abort', abort, { once: true });
  child.send({ type: 'compile', id: ID, spec });
  try {
    return await done.promise;
  } finally {
    call.signal?.removeEventListener('abort', abort);
    child.kill('has done its work');
    // The caller moves or removes the files, which the process closes only when it ends.
    await gone.promise;
  }
}
