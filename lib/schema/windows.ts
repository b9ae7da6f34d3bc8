import * as v from 'valibot';
import { strictObject } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { exactOptional, whole } from './values.ts';

/** Ways to combine the answers of windows; each has a meaning for some kinds of questions. */
const COMBINES = ['any', 'all', 'noisy_or', 'best', 'mean', 'max', 'reduce'] as const;
export type Combine = (typeof COMBINES)[number];

/** Least number of tokens of a window. */
const LEAST_SIZE = 32;

const Windows = v.pipe(
  strictObject({
    size: exactOptional(
      whole(LEAST_SIZE, 1_048_576),
      'About how many tokens a window has. Default: as many as the model reads beside the questions.',
    ),
    overlap: exactOptional(
      whole(0, 524_288),
      'About how many tokens a window repeats from the one before. Default: a quarter of size, at most 256.',
    ),
    combine: exactOptional(
      v.picklist(COMBINES),
      'any (default), all or noisy_or: whether something is true in some window, in all, or in some if they were ' +
        'independent. best (default) or mean: a choice. best (default) or max: a score. reduce: a choice or score ' +
        'about the notes that the model takes of each window.',
    ),
  }),
  rule(({ size, overlap }) =>
    size !== undefined && overlap !== undefined && overlap > size / 2
      ? { code: 'invalid_value', at: ['overlap'], message: 'must be at most half of size' }
      : null,
  ),
);
export type Windows = v.InferOutput<typeof Windows>;

/** The field of a request that lets a text be read in windows. */
export const windows = exactOptional(
  Windows,
  'Reads a text that is too long in windows, asks all questions about each, and merges the answers. Without it, such a text is refused.',
);
