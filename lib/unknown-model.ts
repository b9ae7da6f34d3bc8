import { AssayError } from './errors.ts';
import { nearestName } from './nearest-name.ts';

/** The most names in one message. */
const MOST_NAMED = 8;

/** Lists the models that a backend has instead of an unknown one. */
export interface KnownModels {
  /** Models that answer now. */
  served: readonly string[];
  /** All models of the backend. */
  known: readonly string[];
}

/** Returns the `model_not_found` of a request whose model a backend does not know. */
export function unknownModel(wanted: string, { served, known }: KnownModels): AssayError {
  const meant = nearestName(wanted, known);
  const more = served.length > MOST_NAMED ? ' and others' : '';
  const message = [
    'There is no such model here.',
    ...(meant === undefined ? [] : [`Did you mean ${meant}?`]),
    served.length === 0 ? 'No model is loaded.' : `Loaded: ${served.slice(0, MOST_NAMED).join(', ')}${more}.`,
    'GET /v1/models lists all.',
  ].join(' ');
  return new AssayError('model_not_found', message, { param: 'model' });
}
