import { AssayError } from '../../lib/errors.ts';
import { asModelId, type ModelId } from '../../lib/model-id.ts';

/** Checks every name from outside that becomes part of a path: ids, revisions, and file names in a repository. */

/**
 * Characters with a special meaning in file names on some system: separators, drive letters, wildcards, control
 * characters.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const UNSAFE_CHARACTER = /[\\:*?"<>|\u0000-\u001f\u007f]/;
/** Matches the names that Windows reserves for devices, with any extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/** Tells whether a name is safe as one segment of a path, on every operating system. */
export function safeSegment(segment: string): boolean {
  if (segment === '' || segment === '.' || segment === '..' || segment.length > 255) return false;
  return !UNSAFE_CHARACTER.test(segment) && !DEVICE_NAME.test(segment) && !/[. ]$/.test(segment);
}

/** Tells whether a path inside a repository, such as `onnx/model.onnx`, is safe as a relative path on this machine. */
export function isSafeRepositoryPath(file: string): boolean {
  const segments = file.split('/');
  return file.length <= 1024 && segments.length <= 16 && segments.every(safeSegment);
}

/**
 * Throws `invalid_value`, which says that a name cannot be stored safely.
 *
 * @param what kind of name, for the message
 */
export function refuseName(what: string): never {
  throw new AssayError(
    'invalid_value',
    `The ${what} cannot be stored safely. Use one without special characters and reserved names.`,
  );
}

/**
 * Returns the value if it matches the pattern. Throws `invalid_value` otherwise.
 *
 * @param what kind of value, for the message
 */
export function checked(value: string, pattern: RegExp, what: string): string {
  return pattern.test(value) ? value : refuseName(what);
}

/**
 * Returns the folder name of a model in the hub cache, `models--<namespace>--<name>`. Throws `invalid_model_id` for a
 * malformed id, and for one that contains `--` or a name that Windows reserves.
 */
export function repositoryFolder(id: ModelId): string {
  const [namespace = '', name = ''] = id.split('/');
  if (asModelId(id) === null || id.includes('--') || !safeSegment(namespace) || !safeSegment(name)) {
    throw new AssayError(
      'invalid_model_id',
      'No hub has a model with this name: "--" and reserved names are not allowed. Check the spelling.',
      { param: 'model' },
    );
  }
  return `models--${namespace}--${name}`;
}

/** Returns the model id of a repository's folder in the hub cache; null for any other folder. */
export function idOfRepositoryFolder(folder: string): ModelId | null {
  const [kind, namespace, name, more] = folder.split('--');
  return kind === 'models' && namespace && name && more === undefined ? asModelId(`${namespace}/${name}`) : null;
}
