import type { Constraint, Vocabulary } from '../../lib/grammar/constraint.ts';

/** Returns a generator of numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function allowedTokens(constraint: Constraint, { size }: Vocabulary): number[] {
  const mask = new Uint32Array(Math.ceil(size / 32));
  constraint.mask(mask);
  const allowed: number[] = [];
  mask.forEach((bits, word) => {
    for (let rest = bits; rest !== 0; rest &= rest - 1) allowed.push(word * 32 + 31 - Math.clz32(rest & -rest));
  });
  return allowed;
}

/** Masks of tokens by their characters. */
const lookingLike = new WeakMap<Vocabulary, Map<RegExp, Uint32Array>>();

function tokensLike(vocabulary: Vocabulary, pattern: RegExp): Uint32Array {
  const known = lookingLike.get(vocabulary) ?? new Map<RegExp, Uint32Array>();
  lookingLike.set(vocabulary, known);
  let mask = known.get(pattern);
  if (!mask) {
    mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
    for (let token = 0; token < vocabulary.size; token++) {
      const bytes = vocabulary.bytes(token);
      if (bytes && pattern.test(String.fromCharCode(...bytes))) mask[token >> 5]! |= 1 << (token & 31);
    }
    known.set(pattern, mask);
  }
  return mask;
}

const ANY_CLOSING = /^["}\],]/;
/** Tokens that end most come first: they begin nothing new. */
const IN_STRING = [/^"[}\]]*$/, /^"/];
const BETWEEN = [/^[}\]]+$/, /^[}\]]/, /^"$/, /^,/];

/**
 * Returns a token of a mask that is also in `among`; -1 if there is none. Scans from a random position, so it is quick
 * and nearly fair.
 */
function some(mask: Uint32Array, among: Uint32Array | null, random: () => number): number {
  const start = Math.floor(random() * mask.length);
  for (let i = 0; i < mask.length; i++) {
    const word = (start + i) % mask.length;
    const bits = mask[word]! & (among ? among[word]! : -1);
    if (bits === 0) continue;
    const set = Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => bits & (1 << bit));
    return word * 32 + set[Math.floor(random() * set.length)]!;
  }
  return -1;
}

/**
 * Picks any allowed token, and often one that begins with a quote, bracket or comma, as a model comes to an end; in a
 * hurry always one that closes something, if there is any.
 */
export function pick(constraint: Constraint, vocabulary: Vocabulary, random: () => number, hurried: boolean): number {
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  constraint.mask(mask);
  const wanted = hurried ? (inString(constraint) ? IN_STRING : BETWEEN) : random() < 0.4 ? [ANY_CLOSING] : [];
  for (const pattern of wanted) {
    const token = some(mask, tokensLike(vocabulary, pattern), random);
    if (token >= 0) return token;
  }
  return some(mask, null, random);
}

/** Tells whether the text so far ends inside a string. */
function inString(constraint: Constraint): boolean {
  return constraint.text().replace(/\\./gs, '').split('"').length % 2 === 0;
}

/** Generates an answer. `whole` is false if `limit` tokens were not enough. */
export function generate(
  constraint: Constraint,
  vocabulary: Vocabulary,
  random: () => number,
  { patience = 40, limit = 3_000, before = (_: Constraint): void => {} } = {},
): { whole: boolean; chosen: number } {
  let chosen = 0;
  while (true) {
    constraint.takeForced();
    if (constraint.complete) return { whole: true, chosen };
    if (chosen >= limit) return { whole: false, chosen };
    before(constraint);
    constraint.accept(pick(constraint, vocabulary, random, chosen > patience));
    chosen++;
  }
}
