/** A straight line through measurements: its slope per hour with a 95% confidence interval. */
export interface Slope {
  perHour: number;
  low: number;
  high: number;
}

export interface Point {
  seconds: number;
  value: number;
}

/**
 * Fits a line by least squares. The interval corrects for autocorrelation of neighbouring measurements: their residuals
 * are taken as an AR(1) process, which leaves n(1−r)/(1+r) independent ones (Santer et al. 2000, J. Geophys. Res. 105).
 */
export function slopeOf(points: readonly Point[]): Slope {
  const n = points.length;
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / n;
  const t = points.map(({ seconds }) => seconds / 3600);
  const y = points.map(({ value }) => value);
  const [meanT, meanY] = [mean(t), mean(y)];
  const spread = t.reduce((sum, one) => sum + (one - meanT) ** 2, 0);
  const perHour = t.reduce((sum, one, i) => sum + (one - meanT) * ((y[i] ?? 0) - meanY), 0) / spread;
  const residuals = t.map((one, i) => (y[i] ?? 0) - meanY - perHour * (one - meanT));
  const squares = residuals.reduce((sum, one) => sum + one ** 2, 0);
  if (squares === 0) return { perHour, low: perHour, high: perHour };
  const lagged = residuals.slice(1).reduce((sum, one, i) => sum + one * (residuals[i] ?? 0), 0);
  const r = Math.max(0, lagged / squares);
  const independent = Math.max(3, (n * (1 - r)) / (1 + r));
  const error = Math.sqrt(squares / (independent - 2) / spread);
  const half = student(independent - 2) * error;
  return { perHour, low: perHour - half, high: perHour + half };
}

/** Returns the 97.5% quantile of Student's distribution, by an expansion around the normal one (Abramowitz 26.7.5). */
function student(degrees: number): number {
  if (degrees < 3) return degrees < 2 ? 12.71 : 4.303;
  const z = 1.959964;
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
  ];
  return terms.reduce((sum, term, i) => sum + term / degrees ** (i + 1), z);
}
