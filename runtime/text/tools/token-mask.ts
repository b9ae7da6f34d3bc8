/** Marks a token as allowed. A mask has bit `token & 31` of word `token >> 5` for each token. */
export function setBit(mask: Uint32Array, token: number): void {
  mask[token >> 5] = (mask[token >> 5] ?? 0) | (1 << (token & 31));
}

/** Marks a token as not allowed. */
export function clearBit(mask: Uint32Array, token: number): void {
  mask[token >> 5] = (mask[token >> 5] ?? 0) & ~(1 << (token & 31));
}

/** Marks every token that another mask marks. */
export function addMask(mask: Uint32Array, other: Uint32Array): void {
  for (let i = 0; i < mask.length; i++) mask[i] = (mask[i] ?? 0) | (other[i] ?? 0);
}
