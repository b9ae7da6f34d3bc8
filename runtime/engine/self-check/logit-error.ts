/**
 * Returns the error of logits against the expected ones: the sum of absolute differences, divided by the sum of
 * absolute deviations of the expected logits from their row's mean. 0 if they are equal, about 1 if they are unrelated,
 * NaN if any logit is not a number.
 */
export function logitError(wanted: readonly Row[], got: readonly Row[]): number {
  let difference = 0;
  let deviation = 0;
  for (const [at, row] of wanted.entries()) {
    let sum = 0;
    for (const logit of row) sum += logit;
    const mean = sum / row.length;
    for (const [token, logit] of row.entries()) {
      difference += Math.abs(logit - got[at]![token]!);
      deviation += Math.abs(logit - mean);
    }
  }
  return difference / deviation;
}

type Row = Float32Array | number[];
