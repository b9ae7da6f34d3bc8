import type { LoadResponse } from '../../../lib/schema/model-operations.ts';
import { screen } from './screen.ts';

type Form = Pick<LoadResponse, 'precision' | 'precision_reason' | 'precision_warning'>;

/**
 * Writes to standard error the number format of a model's weights, why it was chosen, and a warning if it may make
 * answers worse.
 */
export function showForm(form: Form): void {
  const { precision, precision_reason: why } = form;
  if (precision) screen.note(`Weights in ${precision}${why ? `: ${why}` : ''}.`);
  warnOfForm(form);
}

/** Warns on standard error if the number format of the weights may make answers worse. */
export function warnOfForm({ precision_warning: warning }: Form): void {
  if (warning) screen.note(`Warning: ${warning}`);
}
