/** Bounds the runs of the model. */
export interface Limits {
  /** New tokens of one run, approximately. More are not faster, need more memory, and delay other jobs. */
  tokens: number;
  /**
   * Tokens of prompts in a run that also decodes answers, so that these continue. Measured: `npm run bench -- crowd`.
   */
  tokensBesideDecode: number;
  /** Rows of logits of one job in a run. */
  rows: number;
  /**
   * Tokens are drafted only while a run has at most this many rows of logits. With drafts, one run can decide several
   * tokens. 0 turns drafts off. A further row costs little as long as reading the weights takes most of a run.
   */
  draftRows: number;
  /**
   * Branches side by side. With more, each read of the weights serves more branches, but attention reads more hidden
   * cells.
   */
  group: number;
  /** Tokens of the suffixes in a group; a branch with more gets a group of its own. */
  groupTokens: number;
}

export const DEFAULT_LIMITS: Limits = {
  tokens: 256,
  tokensBesideDecode: 32,
  rows: 32,
  draftRows: 0,
  group: 16,
  groupTokens: 1024,
};
