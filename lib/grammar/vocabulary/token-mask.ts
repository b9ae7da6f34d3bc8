/** Sets a token's bit in a mask, which marks it as allowed: bit `token & 31` of word `token >> 5`. */
export function setBit(mask: Uint32Array, token: number): void {
  mask[token >> 5] = (mask[token >> 5] ?? 0) | (1 << (token & 31));
}

/** Clears a token's bit in a mask, which marks it as not allowed. */
export function clearBit(mask: Uint32Array, token: number): void {
  mask[token >> 5] = (mask[token >> 5] ?? 0) & ~(1 << (token & 31));
}

/** Sets all bits in `mask` that are set in `other`. */
export function addMask(mask: Uint32Array, other: Uint32Array): void {
  for (let i = 0; i < mask.length; i++) mask[i] = (mask[i] ?? 0) | (other[i] ?? 0);
}
