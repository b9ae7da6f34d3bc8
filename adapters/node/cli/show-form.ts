import type { LoadResponse } from '../../../lib/schema/model-operations.ts';
import { screen } from './screen.ts';

type Form = Pick<LoadResponse, 'precision' | 'precision_reason' | 'precision_warning'>;

/** Shows the form of a model's weights and why it was chosen, with a warning if its answers may be worse for it. */
export function showForm(form: Form): void {
  const { precision, precision_reason: why } = form;
  if (precision) screen.note(`Weights in ${precision}${why ? `: ${why}` : ''}.`);
  warnOfForm(form);
}

/** Warns of a form of the weights in which answers may be worse. */
export function warnOfForm({ precision_warning: warning }: Form): void {
  if (warning) screen.note(`Warning: ${warning}`);
}
