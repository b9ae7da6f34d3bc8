import { SPARE_ROWS } from '../../onnx/rewrites/rotary-tables.ts';

/** Bounds the size of each run of the model. */
export interface Limits {
  /**
   * Approximate number of new tokens of one run. Longer runs are not faster per token, need more memory, and delay
   * other jobs.
   */
  tokens: number;
  /**
   * Maximum number of prompt tokens in a run that also decodes, so that decoding jobs are not delayed much. Chosen by
   * `npm run bench -- crowd`.
   */
  tokensBesideDecode: number;
  /**
   * Maximum rows of logits in a run. Once they are used up, each further job may request `FEWEST_ROWS`. Default: as
   * many as take `LOGIT_BYTES`, at least `FEWEST_ROWS` and at most `tokens`.
   */
  rows: number;
  /**
   * Maximum rows of logits of a run with drafts; 0 turns drafts off. With drafts, one run can decide several tokens. A
   * further row costs little as long as reading the weights takes most of a run.
   */
  draftRows: number;
  /**
   * Maximum number of branches of a job that decode side by side. With more, each read of the weights serves more
   * branches, but attention computes more masked cells.
   */
  group: number;
  /**
   * Maximum number of suffix tokens of all branches of a group together; a branch with more gets a group of its own.
   */
  groupTokens: number;
  /**
   * Minimum number of suffix tokens of a branch that is read like the prefix, in a group of its own, if branches are
   * computed apart from their prefix: attention among so many cells costs more there.
   */
  longSuffix: number;
  /**
   * Maximum number of KV cells after the prefix for the branches of a group together. If they need more, the last ones
   * wait for a later group. A branch that is alone may use the whole context.
   */
  cells: number;
}

/** Rows of logits that each job of a run may request, so that none waits for the others. */
export const FEWEST_ROWS = 32;
/** Maximum bytes of the logits of a run. Options of many tokens need a row for each of them. */
const LOGIT_BYTES = 64 * 2 ** 20;

/** Returns the default limits for a model with so many tokens in its vocabulary. */
export function defaultLimits(vocabSize: number): Limits {
  const tokens = 256;
  const rows = Math.floor(LOGIT_BYTES / (vocabSize * Float32Array.BYTES_PER_ELEMENT));
  return {
    tokens,
    tokensBesideDecode: 32,
    rows: Math.max(FEWEST_ROWS, Math.min(tokens, rows)),
    draftRows: 0,
    group: 16,
    groupTokens: 1024,
    longSuffix: 512,
    // A quarter of the spare rows is for copies of cells (`job.ts`) and for drafts.
    cells: (SPARE_ROWS * 3) / 4,
  };
}
