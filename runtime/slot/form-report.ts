import type { FormReport, Slot } from '../../lib/host.ts';
import { accuracyWarning } from '../compile/form-choice.ts';
import type { CompiledModel, CompiledRecord } from '../store/compiled-store.ts';

/** Returns what the report of a load or a download says about the form of a compiled model's weights. */
export function formReport({ fingerprint, form, choice }: CompiledRecord): FormReport {
  if (!form || !choice) return {};
  const warning = fingerprint.precision === 'auto' ? null : accuracyWarning(form, choice);
  return {
    precision: form,
    precision_reason: choice.reason,
    ...(warning === null ? {} : { precision_warning: warning }),
  };
}

/** Returns what the status of the slot says about the form of the loaded model's weights. */
export function formInSlot(compiled: CompiledModel | undefined): Pick<Slot, 'precision' | 'precisionReason'> {
  const { form, choice } = compiled?.record ?? {};
  return { ...(form ? { precision: form } : {}), ...(choice ? { precisionReason: choice.reason } : {}) };
}
