import { at } from '../../../lib/at.ts';
import type { ChosenToken, Sampling } from '../job-spec.ts';
import type { Random } from '../random.ts';

/** Marks the tokens that may be chosen in a bit set: token `t` is bit `t & 31` of word `t >> 5`. */
export type TokenMask = Uint32Array;

/**
 * Chooses one token from a row of logits. Applies the penalties, then the temperature, then top-p, as OpenAI's API
 * documents them. Reports log-probabilities if `sampling.topLogprobs` is not null: the model's own, before any of these
 * and before the mask. Overwrites entries of `logits` if there are penalties. Throws if no token is allowed, or if all
 * allowed logits are NaN.
 *
 * @param mask allowed tokens; null allows all
 * @param counts how often each token has been chosen so far, for the penalties
 */
export function chooseToken(
  logits: Float32Array,
  sampling: Sampling,
  mask: TokenMask | null,
  counts: ReadonlyMap<number, number>,
  random: Random,
): ChosenToken {
  const alternatives = sampling.topLogprobs;
  const normaliser = alternatives === null ? 0 : logSumExp(logits);
  const top = alternatives === null ? [] : largest(logits, alternatives);
  const topLogprobs = top.map((token) => ({ token, logprob: logitOf(logits, token) - normaliser }));
  const before = applyPenalties(logits, sampling, counts);
  const token = sampling.temperature === 0 ? argmax(logits, mask) : draw(logits, sampling, mask, random);
  if (alternatives === null) return { token };
  return { token, logprob: (before.get(token) ?? logitOf(logits, token)) - normaliser, top: topLogprobs };
}

/**
 * Returns the id of the allowed token with the highest logit, the lowest id on a tie. Throws if no token is allowed, or
 * if all allowed logits are NaN.
 *
 * @param mask allowed tokens; null allows all
 */
export function argmax(logits: Float32Array, mask: TokenMask | null): number {
  let best = -1;
  let highest = Number.NEGATIVE_INFINITY;
  if (!mask) {
    for (let token = 0; token < logits.length; token++) {
      if (logitOf(logits, token) > highest) {
        highest = logitOf(logits, token);
        best = token;
      }
    }
  } else {
    forEachAllowed(mask, logits.length, (token) => {
      if (logitOf(logits, token) > highest || best < 0) {
        highest = logitOf(logits, token);
        best = token;
      }
    });
  }
  // Comparisons with NaN are false, so without this check any token could be the result.
  if (Number.isNaN(best < 0 ? logits[0] : highest)) throw new Error('the logits are not numbers');
  if (best < 0) throw new Error('no token is allowed');
  return best;
}

/** Terms below e^-25 are skipped: a million of them together change a sum by less than the precision of the logits. */
const DEEPEST = 25;
const STEPS = 128;
/** A product, unlike a division, does not hold up the loop over the vocabulary. */
const SIXTH = 1 / 6;
/** Exponential of `-index / STEPS`; 0 for the last one, which stands for all terms that are skipped. */
const EXPONENTIALS = Float64Array.from({ length: DEEPEST * STEPS + 1 }, (_, index) =>
  index === DEEPEST * STEPS ? 0 : Math.exp(-index / STEPS),
);

/**
 * Returns the natural logarithm of the sum of the logits' exponentials; not finite if one is NaN or all are
 * -Infinity. A logit minus this value is its token's log-probability.
 *
 * A long option needs such a sum for each of its tokens. A table, four terms of the series and no branch take a third
 * of the time of `Math.exp`, with an error below 1e-10.
 */
export function logSumExp(logits: Float32Array): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++)
    if ((logits[token] as number) > highest) highest = logits[token] as number;
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    const steps = Math.min((highest - (logits[token] as number)) * STEPS, DEEPEST * STEPS);
    const index = steps | 0;
    const rest = (index - steps) / STEPS;
    sum += (EXPONENTIALS[index] as number) * (1 + rest * (1 + rest * (1 / 2 + rest * SIXTH)));
  }
  return highest + Math.log(sum);
}

/**
 * Returns the natural logarithm of a token's probability among the tokens that `mask` allows. Throws if it allows none,
 * or if all allowed logits are NaN.
 */
export function logProbability(logits: Float32Array, token: number, mask: TokenMask): number {
  return logitOf(logits, token) - logMass(logits, mask);
}

/**
 * Returns the natural logarithm of the sum of the exponentials of the logits that `mask` allows. Throws if it allows
 * none, or if all allowed logits are NaN.
 */
export function logMass(logits: Float32Array, mask: TokenMask): number {
  const highest = logitOf(logits, argmax(logits, mask));
  let sum = 0;
  forEachAllowed(mask, logits.length, (allowed) => {
    sum += Math.exp(logitOf(logits, allowed) - highest);
  });
  return highest + Math.log(sum);
}

/** Applies the penalties to the logits in place. Returns the original logits of the tokens that it changed. */
function applyPenalties(
  logits: Float32Array,
  { presencePenalty, frequencyPenalty }: Sampling,
  counts: ReadonlyMap<number, number>,
): Map<number, number> {
  const before = new Map<number, number>();
  if (presencePenalty === 0 && frequencyPenalty === 0) return before;
  for (const [token, count] of counts) {
    before.set(token, logitOf(logits, token));
    logits[token] = logitOf(logits, token) - presencePenalty - frequencyPenalty * count;
  }
  return before;
}

function draw(logits: Float32Array, { temperature, topP }: Sampling, mask: TokenMask | null, random: Random): number {
  const highest = logitOf(logits, argmax(logits, mask));
  const floor = highest - 25 * temperature;
  const tokens: number[] = [];
  const weights: number[] = [];
  let sum = 0;
  const add = (token: number): void => {
    const logit = logitOf(logits, token);
    if (logit < floor) return;
    const weight = Math.exp((logit - highest) / temperature);
    tokens.push(token);
    weights.push(weight);
    sum += weight;
  };
  if (mask) forEachAllowed(mask, logits.length, add);
  else for (let token = 0; token < logits.length; token++) add(token);
  if (topP < 1) return drawFromNucleus(tokens, weights, sum, topP, random);
  return pick(tokens, weights, sum, random);
}

/**
 * Draws a token from the smallest set of most probable tokens whose probabilities add up to `topP` (Holtzman et al.
 * 2020).
 */
function drawFromNucleus(tokens: number[], weights: number[], sum: number, topP: number, random: Random): number {
  // All tokens below this weight together have less than 1 - topP, so none of them can be in the nucleus.
  const least = ((1 - topP) * sum) / tokens.length;
  const candidates: { token: number; weight: number }[] = [];
  for (const [index, weight] of weights.entries()) {
    if (weight >= least) candidates.push({ token: at(tokens, index), weight });
  }
  candidates.sort((a, b) => b.weight - a.weight || a.token - b.token);
  let mass = 0;
  let size = 0;
  for (const { weight } of candidates) {
    mass += weight;
    size++;
    if (mass >= topP * sum) break;
  }
  const nucleus = candidates.slice(0, size);
  return pick(
    nucleus.map(({ token }) => token),
    nucleus.map(({ weight }) => weight),
    mass,
    random,
  );
}

/**
 * Draws a value with a probability in proportion to its weight.
 *
 * @param sum sum of all weights
 */
function pick(values: readonly number[], weights: readonly number[], sum: number, random: Random): number {
  let left = random.uniform() * sum;
  for (const [index, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return at(values, index);
  }
  // Rounding errors may leave a small remainder, which goes to the last value.
  return at(values, values.length - 1);
}

/** Returns the `count` tokens with the highest logits, best first. */
function largest(logits: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let token = 0; token < logits.length && count > 0; token++) {
    const logit = logitOf(logits, token);
    if (best.length === count && logit <= logitOf(logits, at(best, count - 1))) continue;
    let place = best.length;
    while (place > 0 && logitOf(logits, at(best, place - 1)) < logit) place--;
    best.splice(place, 0, token);
    if (best.length > count) best.pop();
  }
  return best;
}

/** Returns the logit of a token; -Infinity (never sampled) if its id is beyond the end of the row. */
function logitOf(logits: Float32Array, token: number): number {
  return logits[token] ?? Number.NEGATIVE_INFINITY;
}

function forEachAllowed(mask: TokenMask, size: number, visit: (token: number) => void): void {
  for (let word = 0; word < mask.length; word++) {
    let bits = at(mask, word);
    while (bits !== 0) {
      const token = word * 32 + (31 - Math.clz32(bits & -bits));
      if (token < size) visit(token);
      bits &= bits - 1;
    }
  }
}
