import type { ChosenToken, Sampling } from './job.ts';
import type { Random } from './random.ts';

/** Tokens that may be chosen: bit `t & 31` of word `t >> 5`. */
export type TokenMask = Uint32Array;

/**
 * Chooses one token from a row of logits. Penalties, temperature, then top-p, as OpenAI describes them; log-probabilities are
 * the model's own, before any of these and before the mask. Overwrites the row where there are penalties.
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
  const topLogprobs = top.map((token) => ({ token, logprob: logits[token]! - normaliser }));
  const before = penalised(logits, sampling, counts);
  const token = sampling.temperature === 0 ? argmax(logits, mask) : draw(logits, sampling, mask, random);
  if (alternatives === null) return { token };
  return { token, logprob: (before.get(token) ?? logits[token]!) - normaliser, top: topLogprobs };
}

/** The most probable allowed token, the lowest id on a tie. */
export function argmax(logits: Float32Array, mask: TokenMask | null): number {
  let best = -1;
  let highest = Number.NEGATIVE_INFINITY;
  if (!mask) {
    for (let token = 0; token < logits.length; token++) {
      if (logits[token]! > highest) {
        highest = logits[token]!;
        best = token;
      }
    }
  } else {
    forEachAllowed(mask, logits.length, (token) => {
      if (logits[token]! > highest || best < 0) {
        highest = logits[token]!;
        best = token;
      }
    });
  }
  if (best < 0) throw new Error('no token is allowed');
  return best;
}

/** log of the sum of exponentials: what turns logits into log-probabilities. */
export function logSumExp(logits: Float32Array): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) if (logits[token]! > highest) highest = logits[token]!;
  // e^-25 times a million tokens is below the precision of the logits themselves.
  const floor = highest - 25;
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    const logit = logits[token]!;
    if (logit > floor) sum += Math.exp(logit - highest);
  }
  return highest + Math.log(sum);
}

/** Returns the natural logarithm of a token's probability among the allowed ones. */
export function logProbability(logits: Float32Array, token: number, mask: TokenMask): number {
  const highest = logits[argmax(logits, mask)]!;
  let sum = 0;
  forEachAllowed(mask, logits.length, (allowed) => {
    sum += Math.exp(logits[allowed]! - highest);
  });
  return logits[token]! - highest - Math.log(sum);
}

/** Applies the penalties in place; returns what stood there before. */
function penalised(
  logits: Float32Array,
  { presencePenalty, frequencyPenalty }: Sampling,
  counts: ReadonlyMap<number, number>,
): Map<number, number> {
  const before = new Map<number, number>();
  if (presencePenalty === 0 && frequencyPenalty === 0) return before;
  for (const [token, count] of counts) {
    before.set(token, logits[token]!);
    logits[token] = logits[token]! - presencePenalty - frequencyPenalty * count;
  }
  return before;
}

function draw(logits: Float32Array, { temperature, topP }: Sampling, mask: TokenMask | null, random: Random): number {
  const highest = logits[argmax(logits, mask)]!;
  const floor = highest - 25 * temperature;
  const tokens: number[] = [];
  const weights: number[] = [];
  let sum = 0;
  const add = (token: number): void => {
    const logit = logits[token]!;
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

/** The smallest set of most probable tokens whose probabilities reach `topP` (Holtzman et al. 2020). */
function drawFromNucleus(tokens: number[], weights: number[], sum: number, topP: number, random: Random): number {
  // All tokens below this share less than 1 - topP together, so none of them can be in the nucleus.
  const least = ((1 - topP) * sum) / tokens.length;
  const order = tokens.map((_, index) => index).filter((index) => weights[index]! >= least);
  order.sort((a, b) => weights[b]! - weights[a]! || tokens[a]! - tokens[b]!);
  const nucleus: number[] = [];
  let mass = 0;
  for (const index of order) {
    nucleus.push(index);
    mass += weights[index]!;
    if (mass >= topP * sum) break;
  }
  const chosen = pick(
    nucleus,
    nucleus.map((index) => weights[index]!),
    mass,
    random,
  );
  return tokens[chosen]!;
}

function pick(values: readonly number[], weights: readonly number[], sum: number, random: Random): number {
  let left = random.uniform() * sum;
  for (let index = 0; index < values.length; index++) {
    left -= weights[index]!;
    if (left < 0) return values[index]!;
  }
  return values.at(-1)!;
}

/** The `count` tokens with the highest logits, best first. */
function largest(logits: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let token = 0; token < logits.length && count > 0; token++) {
    if (best.length === count && logits[token]! <= logits[best[count - 1]!]!) continue;
    let at = best.length;
    while (at > 0 && logits[best[at - 1]!]! < logits[token]!) at--;
    best.splice(at, 0, token);
    if (best.length > count) best.pop();
  }
  return best;
}

function forEachAllowed(mask: TokenMask, size: number, visit: (token: number) => void): void {
  for (let word = 0; word < mask.length; word++) {
    let bits = mask[word]!;
    while (bits !== 0) {
      const token = word * 32 + (31 - Math.clz32(bits & -bits));
      if (token < size) visit(token);
      bits &= bits - 1;
    }
  }
}
