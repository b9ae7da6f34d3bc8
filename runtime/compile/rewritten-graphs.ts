import type { WeightForm } from '../../lib/schema/weight-form.ts';
import type { Manifest } from './manifest.ts';
import type { GraphFile } from './planned-graphs.ts';

/** Lists what the manifest tells the engine about a graph. */
export type GraphFacts = Pick<
  Manifest,
  | 'slots'
  | 'alone'
  | 'path'
  | 'graph'
  | 'vocabSize'
  | 'inputs'
  | 'logits'
  | 'end'
  | 'kv'
  | 'media'
  | 'states'
  | 'static'
>;

/** Holds the graphs of one form, in memory. */
export interface Rewritten {
  facts: GraphFacts;
  form: WeightForm;
  graphs: GraphFile[];
}
