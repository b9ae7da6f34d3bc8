/** Describes one job's part of a run of the model: its new cells are those from `start` to the sequence's end. */
export interface Plan {
  start: number;
  /** Cells whose logits are needed. */
  rows: readonly PlannedRow[];
  /** Cells after which to store a state snapshot, for a model with recurrent layers. */
  keep: readonly number[];
  /**
   * Cells whose recurrent states the run recomputes (`planReplay`), each from the copy that `keep` names at the same
   * index; absent in all other runs.
   */
  replayed?: readonly number[];
}

/** Names a cell whose logits a branch needs. */
export interface PlannedRow {
  cell: number;
  /** Index of the branch that needs the logits. */
  branch: number;
  /** Id of the request for logits, to pass to `BranchRun.deliver`. */
  node: number;
}
