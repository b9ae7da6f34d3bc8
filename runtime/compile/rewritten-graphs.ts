import type { WeightForm } from '../../lib/schema/form-choice.ts';
import type { Manifest } from './manifest.ts';
import type { GraphFile } from './planned-graphs.ts';

/** Lists the fields of the manifest that depend on how the graphs were rewritten. */
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

/** Holds the rewritten graphs of a model in one weight form, in memory. */
export interface Rewritten {
  facts: GraphFacts;
  form: WeightForm;
  graphs: GraphFile[];
}
