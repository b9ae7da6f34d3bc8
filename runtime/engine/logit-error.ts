/**
 * Returns the distance of logits from the expected ones: the sum of all differences as a share of the expected logits'
 * spread around each row's mean. 0 when they are equal, about 1 when they are unrelated, NaN when one is not a number.
 */
export function logitError(wanted: readonly Row[], got: readonly Row[]): number {
  let difference = 0;
  let spread = 0;
  for (const [at, row] of wanted.entries()) {
    let sum = 0;
    for (const logit of row) sum += logit;
    const mean = sum / row.length;
    for (const [token, logit] of row.entries()) {
      difference += Math.abs(logit - got[at]![token]!);
      spread += Math.abs(logit - mean);
    }
  }
  return difference / spread;
}

type Row = Float32Array | number[];
