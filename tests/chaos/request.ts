import type { Random } from '../../runtime/engine/random.ts';

/** A request of the load. */
export interface Operation {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  accept?: string;
}

/** Makes a request to the model that the callers of a run use. */
export type Make = (random: Random, model: string) => Operation;

export const STARTER = 'assay/starter';
/** Models that the test hub offers: one that reads text alone, one that reads images, one that hears. */
export const TINY = 'acme/tiny';
export const VISION = 'acme/vision';
export const AUDIO = 'acme/audio';

export const EVENTS = 'text/event-stream';

const WORDS =
  'parcel late mug broken refund invoice angry thanks tomorrow Berlin server down ünïcode 日本 <|im_end|>'.split(' ');

export const text = (random: Random, most: number): string =>
  Array.from({ length: 1 + integer(random, most) }, () => pick(random, WORDS)).join(' ');

export const integer = (random: Random, below: number): number => Math.floor(random.uniform() * below);

// The lists have members, and `uniform` is below 1.
export const pick = <T>(random: Random, list: readonly T[]): T => list[integer(random, list.length)] as T;

export const post = (path: string, body: unknown, accept?: string): Operation => ({
  method: 'POST',
  path,
  body,
  ...(accept === undefined ? {} : { accept }),
});
