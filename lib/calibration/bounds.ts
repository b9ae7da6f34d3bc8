/*
 * Exact bounds of binomial proportions (Clopper and Pearson 1934), the test of paired answers (McNemar 1947, exact),
 * and seeded random numbers. The tests compare the values with SciPy's.
 */

/** Returns the probability of at most `k` events in `n` independent trials of probability `p`. */
export function binomialCdf(k: number, n: number, p: number): number {
  if (k >= n || p <= 0) return 1;
  if (k < 0 || p >= 1) return 0;
  // Sums from the largest term down, each from its neighbour: no term overflows, and small ones end the sum.
  const mode = Math.min(k, Math.floor((n + 1) * p));
  const peak = Math.exp(logChoose(n, mode) + mode * Math.log(p) + (n - mode) * Math.log1p(-p));
  const odds = p / (1 - p);
  let sum = peak;
  for (let i = mode, term = peak; i > 0 && term > sum * 1e-17; i--) {
    term *= i / ((n - i + 1) * odds);
    sum += term;
  }
  for (let i = mode, term = peak; i < k; i++) {
    term *= ((n - i) * odds) / (i + 1);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return Math.min(1, sum);
}

/** Returns ln of the binomial coefficient. */
function logChoose(n: number, k: number): number {
  return logFactorial(n) - logFactorial(k) - logFactorial(n - k);
}

/** Returns ln n!, by Stirling's series from 32 on, where its error is below the rounding. */
function logFactorial(n: number): number {
  if (n < 32) {
    let product = 1;
    for (let i = 2; i <= n; i++) product *= i;
    return Math.log(product);
  }
  const x = n + 1;
  return (
    (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5)
  );
}

/** Returns the one-sided upper bound of a proportion of which `k` of `n` were seen, wrong with probability `delta`. */
export function upperBound(k: number, n: number, delta: number): number {
  if (k >= n) return 1;
  let [low, high] = [k / n, 1];
  while (high - low > 1e-10) {
    const middle = (low + high) / 2;
    if (binomialCdf(k, n, middle) > delta) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Holds an estimate with a confidence interval of 95%. */
export interface Interval {
  value: number;
  low: number;
  high: number;
}

/** Returns a proportion with its exact confidence interval of 95%. */
export function proportion(k: number, n: number): Interval {
  if (n === 0) return { value: 0, low: 0, high: 1 };
  return { value: k / n, low: 1 - upperBound(n - k, n, 0.025), high: upperBound(k, n, 0.025) };
}

/** Returns the least number of labels with which no error at all certifies a target error: ln δ / ln(1 - α). */
export function fewestLabels(target: number, delta: number): number {
  return Math.ceil(Math.log(delta) / Math.log1p(-target));
}

/**
 * Returns the two-sided p-value of McNemar's exact test: the probability that two equally good answerers differ so
 * unevenly, where `one` questions were answered right only by the first, and `other` only by the second.
 */
export function mcnemar(one: number, other: number): number {
  return Math.min(1, 2 * binomialCdf(Math.min(one, other), one + other, 0.5));
}

/**
 * Returns the difference of two accuracies on the same `n` questions with its interval of 95%, where `one` were
 * answered right only by the first, and `other` only by the second. It is exact for the number of questions on which
 * both differ, and has 0 inside unless McNemar's test finds a difference.
 */
export function pairedDifference(one: number, other: number, n: number): Interval {
  const { value, low, high } = proportion(one, one + other);
  const differing = n === 0 ? 0 : (one + other) / n;
  // Not -0, which JSON and tables would show as another value.
  const gain = (share: number) => differing * (2 * share - 1) || 0;
  return { value: one === other ? 0 : gain(value), low: gain(low), high: gain(high) };
}

/** Returns a generator of random numbers from 0 to 1 with a seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
