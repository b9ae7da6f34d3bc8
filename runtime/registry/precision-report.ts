import type { ModelView, PrecisionReport } from '../../lib/models/host.ts';
import { accuracyWarning } from '../compile/choose-precision.ts';
import type { CompiledModel, CompiledRecord } from '../store/compiled-store.ts';

/**
 * Returns the fields of a load's or download's report that describe the precision; none for a record of an earlier
 * version.
 */
export function precisionReport({ fingerprint, precision, choice }: CompiledRecord): PrecisionReport {
  if (!precision || !choice) return {};
  const warning = fingerprint.precision === 'auto' ? null : accuracyWarning(precision, choice);
  return {
    precision,
    precision_reason: choice.reason,
    ...(warning === null ? {} : { precision_warning: warning }),
  };
}

/**
 * Returns the fields of a model's status that describe the precision; none without a model or for a record without a
 * precision.
 */
export function shownPrecision(compiled: CompiledModel | undefined): Pick<ModelView, 'precision' | 'precisionReason'> {
  const { precision, choice } = compiled?.record ?? {};
  return { ...(precision ? { precision } : {}), ...(choice ? { precisionReason: choice.reason } : {}) };
}
