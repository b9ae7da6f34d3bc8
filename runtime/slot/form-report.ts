import type { FormReport, Slot } from '../../lib/host.ts';
import { accuracyWarning } from '../compile/form-choice.ts';
import type { CompiledModel, CompiledRecord } from '../store/compiled-store.ts';

/** Returns the part of the report of a load or a download that describes the form of the weights. */
export function formReport({ fingerprint, form, choice }: CompiledRecord): FormReport {
  if (!form || !choice) return {};
  const warning = fingerprint.precision === 'auto' ? null : accuracyWarning(form, choice);
  return {
    precision: form,
    precision_reason: choice.reason,
    ...(warning === null ? {} : { precision_warning: warning }),
  };
}

/** Returns the part of the status of the slot that describes the form of the weights. */
export function formInSlot(compiled: CompiledModel | undefined): Pick<Slot, 'precision' | 'precisionReason'> {
  const { form, choice } = compiled?.record ?? {};
  return { ...(form ? { precision: form } : {}), ...(choice ? { precisionReason: choice.reason } : {}) };
}
