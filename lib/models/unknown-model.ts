import { AssayError } from '../errors.ts';
import { nearestName } from '../nearest-name.ts';

/** Maximum number of model names in one error message. */
const MOST_NAMED = 8;

/** Lists the models of a backend that the error about an unknown model may name. */
export interface KnownModels {
  /** Ids of the loaded models. */
  served: readonly string[];
  /** Ids of all models of the backend. */
  known: readonly string[];
}

/**
 * Returns the error `model_not_found` for a model that the backend does not have. Its message suggests a similar name
 * and lists the loaded models.
 */
export function unknownModel(wanted: string, { served, known }: KnownModels): AssayError {
  const meant = nearestName(wanted, known) ?? known.find((id) => nearestName(wanted, [nameOf(id)]) !== undefined);
  const more = served.length > MOST_NAMED ? ' and others' : '';
  const message = [
    'There is no such model here.',
    ...(meant === undefined ? [] : [`Did you mean ${meant}?`]),
    served.length === 0 ? 'No model is loaded.' : `Loaded: ${served.slice(0, MOST_NAMED).join(', ')}${more}.`,
    'GET /v1/models lists all.',
  ].join(' ');
  return new AssayError('model_not_found', message, { param: 'model' });
}

/** Returns the error `model_not_loaded` while no model is loaded; `advice` says how this host loads one. */
export function noModelLoaded(advice: string): AssayError {
  return new AssayError('model_not_loaded', `No model is loaded. ${advice}`);
}

/** Returns the part of a model id after its namespace, which callers sometimes send alone. */
function nameOf(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}
