import { AssayError } from '../../lib/errors.ts';
import { asModelId } from '../../lib/model-id.ts';
import type { ModelHost, ModelView } from '../../lib/models/host.ts';
import { DEFAULT_MODEL, listed } from './backend.ts';
import type { Recorded, Script } from './script.ts';
import { pause, throwFault } from './steps.ts';

/** Creates a `ModelHost` that follows a test's script; its active model follows the loads and unloads that succeed. */
export function scriptedHost(script: Script, recorded: Recorded[] = []): ModelHost {
  let active: ModelView = { state: 'loaded', model: DEFAULT_MODEL, device: 'CPU' };
  if (script.active)
    active = { ...script.active, model: script.active.model === null ? null : asModelId(script.active.model) };
  const all = script.inMemory?.map(
    (one): ModelView => ({ ...one, model: one.model === null ? null : asModelId(one.model) }),
  );
  return {
    active: () => all?.[0] ?? active,
    inMemory: () => all ?? [active],
    memory: () => script.memory ?? null,
    async listModels() {
      recorded.push({ call: 'listModels' });
      return listed(script);
    },
    async load(model, options) {
      recorded.push({ call: 'load', model, ...options });
      await pause(script.load);
      throwFault(script.load?.fail);
      if (!listed(script).some((one) => one.id === model)) {
        throw new AssayError('model_not_found', `No ${model} on this machine. Fetch it with: assay pull ${model}`);
      }
      const { device, devices } = active;
      active = { state: 'loaded', model, device, ...(devices ? { devices } : {}) };
      const max_prompt_len = options.maxPromptLen ?? 4096;
      return { model, device: active.device, load_ms: 12, compiled: false, max_prompt_len, ...script.load?.report };
    },
    async unload(named) {
      recorded.push({ call: 'unload', ...(named === undefined ? {} : { model: named }) });
      await pause(script.unload);
      throwFault(script.unload?.fail);
      const { model } = active;
      active = { state: 'unloaded', model: null, device: active.device };
      return { model };
    },
    async *download(model, options) {
      recorded.push({ call: 'download', model, ...options });
      for (const step of script.download ?? [{ type: 'done' as const }]) {
        if ('fail' in step) throwFault(step.fail);
        else if (!('type' in step)) await pause(step);
        else if (step.type === 'progress') yield step;
        else {
          const max_prompt_len = options.maxPromptLen ?? 4096;
          const report = {
            model,
            state: 'compiled' as const,
            bytes: 0,
            compiled: true,
            max_prompt_len,
            ...step.report,
          };
          yield { type: 'done', report };
        }
      }
    },
    async remove(model, options) {
      recorded.push({ call: 'remove', model, ...options });
      await pause(script.remove);
      throwFault(script.remove?.fail);
      const removed = script.remove?.removed ?? [{ kind: 'compiled', bytes: 1000 }];
      return { model, removed, weightsLeft: script.remove?.weightsLeft ?? options.compiledOnly };
    },
  };
}
