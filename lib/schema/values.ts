import * as v from 'valibot';
import { asModelId, type ModelId } from '../model-id.ts';

/* Values that many schemas have. */

/** Returns a schema with its description in the contract. */
export function described<TSchema extends v.GenericSchema>(schema: TSchema, text: string) {
  return v.pipe(schema, v.description(text));
}

/* The fields that a body may lack, as Valibot has them, with their descriptions. */

export function exactOptional<TSchema extends v.GenericSchema>(schema: TSchema, text: string) {
  return v.exactOptional(described(schema, text));
}

export function optional<TSchema extends v.GenericSchema>(schema: TSchema, text: string) {
  return v.optional(described(schema, text));
}

export function nullish<TSchema extends v.GenericSchema>(schema: TSchema, text: string) {
  return v.nullish(described(schema, text));
}

/** A whole number from 0. */
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Returns the schema of a whole number within bounds. */
export function whole(least: number, most?: number): v.GenericSchema<number> {
  const integer = v.pipe(v.number(), v.integer(), v.minValue(least));
  return most === undefined ? integer : v.pipe(integer, v.maxValue(most));
}

export const probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
export const nonEmpty = v.pipe(v.string(), v.minLength(1));

/** Returns the schema of a model id; `message` says what it must be. */
export function modelId(message?: string) {
  return v.custom<ModelId>((value) => typeof value === 'string' && asModelId(value) !== null, message);
}
