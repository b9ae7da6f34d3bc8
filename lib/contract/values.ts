import * as v from 'valibot';

/*
 * Values of the contract between handlers, edge and engine process. The bounds are at least those of the API
 * (docs/interface.md, D-6), because they check another part of Assay, not the user.
 */

/** A text of a request or an answer, at most 20 Mi characters: a request body has at most 20 MiB. */
export const text = v.pipe(v.string(), v.maxLength(20 * 1024 * 1024));
export const short = v.pipe(v.string(), v.maxLength(4096));
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const real = v.pipe(v.number(), v.finite());

/** Returns the schema of a list of at most `most` items. */
export function list<TSchema extends v.GenericSchema>(item: TSchema, most = 1024 * 1024) {
  return v.pipe(v.array(item), v.maxLength(most), v.readonly());
}
