import type { Hash64 } from '../../../lib/affinity.ts';

/** Describes the members of an upstream that rendezvous hashing uses. */
export interface Weighted {
  readonly name: string;
  /** Share of the keys that the upstream gets, relative to the weights of the others; above 0. */
  readonly weight: number;
}

/**
 * Returns the upstreams sorted by their score for `key`, highest first (rendezvous hashing). Every edge isolate
 * computes the same order without communication. When an upstream is added or removed, only the keys of that upstream
 * move. Sources: Thaler & Ravishankar, "Using name-based mappings to increase hit rates", 1998; the weighted score -w /
 * ln(u) is from Schindelhauer & Schomaker, "Weighted Distributed Hash Tables", 2005.
 */
export function rendezvous<B extends Weighted>(key: Hash64, upstreams: readonly B[]): B[] {
  return upstreams
    .map((upstream) => ({ upstream, score: -upstream.weight / Math.log(uniform(key, seedOf(upstream.name))) }))
    .sort((a, b) => b.score - a.score || (a.upstream.name < b.upstream.name ? -1 : 1))
    .map(({ upstream }) => upstream);
}

/** Returns a pseudorandom number in (0, 1), with 52 bits, from a key and an upstream's seed. */
function uniform(key: Hash64, seed: number): number {
  const high = mix(key[0] ^ seed);
  const low = mix(key[1] ^ Math.imul(high, 0x9e3779b1) ^ seed);
  return ((high >>> 6) * 2 ** 26 + (low >>> 6) + 0.5) / 2 ** 52;
}

/**
 * Mixes 32 bits with the finaliser of MurmurHash3 (Appleby). Flipping any input bit flips each output bit with a
 * probability of one half.
 */
function mix(bits: number): number {
  let h = bits;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Returns the seed of an upstream: the FNV-1a hash of its name, mixed with `mix`, because the hashes of names that
 * differ only in their last character are similar.
 */
function seedOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return mix(hash);
}
