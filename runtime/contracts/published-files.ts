import * as v from 'valibot';

/** Holds the names of a model's files, and the parsed contents of the small ones among them, by path. */
export interface PublishedFiles {
  paths: ReadonlySet<string>;
  /**
   * Parsed JSON by path; for `head.pt`, what `readTorchFile` returns. A file that is not downloaded yet is absent.
   */
  json: Readonly<Record<string, unknown>>;
}

/** Reports why a decision model cannot run here. Its message completes "it cannot run here: …". */
export class RefusedContract extends Error {}

/**
 * Returns the parsed contents of a configuration file. Throws `RefusedContract` with the name of the first key that is
 * unknown or has a value that is not supported: such a key may change the numbers.
 */
export function settingsIn<S extends v.GenericSchema>(
  files: PublishedFiles,
  path: string,
  schema: S,
): v.InferOutput<S> {
  const parsed = v.safeParse(schema, files.json[path]);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const at = v.getDotPath(issue);
  const unknown = issue.type === 'strict_object' && issue.expected === 'never';
  const what = unknown
    ? `the key ${at}, which this version of Assay does not know`
    : `${issue.received} for ${at ?? 'its contents'}, which is not supported here`;
  throw new RefusedContract(`its ${path} has ${what}`);
}

/** A temperature: finite and above 0. */
export const Temperature = v.pipe(v.number(), v.finite(), v.gtValue(0));
/** A whole number from 1 on. */
export const Count = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1 << 24));
/** Any value of a key that changes no number. */
export const Ignored = v.optional(v.unknown());
/** Temperatures by type of question, with the names of the System One format. */
export const TemperatureByType = v.strictObject({
  choice: v.optional(Temperature),
  noul: v.optional(Temperature),
  score: v.optional(Temperature),
});

/** Name of each kind of question in the System One format. */
export const TYPE_OF = { predicate: 'noul', choice: 'choice', score: 'score' } as const;
