import type { FormReport, ModelView } from '../../lib/models/host.ts';
import { accuracyWarning } from '../compile/form-choice.ts';
import type { CompiledModel, CompiledRecord } from '../store/compiled-store.ts';

/**
 * Returns the fields of a load's or download's report that describe the weight form; none for a record without a form.
 */
export function formReport({ fingerprint, form, choice }: CompiledRecord): FormReport {
  if (!form || !choice) return {};
  const warning = fingerprint.precision === 'auto' ? null : accuracyWarning(form, choice);
  return {
    precision: form,
    precision_reason: choice.reason,
    ...(warning === null ? {} : { precision_warning: warning }),
  };
}

/**
 * Returns the fields of a model's status that describe the weight form; none without a model or for a record without a
 * form.
 */
export function formInSlot(compiled: CompiledModel | undefined): Pick<ModelView, 'precision' | 'precisionReason'> {
  const { form, choice } = compiled?.record ?? {};
  return { ...(form ? { precision: form } : {}), ...(choice ? { precisionReason: choice.reason } : {}) };
}
