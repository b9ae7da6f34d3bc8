/**
 * Maps each character of byte-level BPE's alphabet to its byte. The alphabet has a printable character for each byte,
 * which makes a vocabulary plain text: printable bytes are their own character, the others start at U+0100. Source:
 * `bytes_to_unicode` in GPT-2's encoder.py.
 */
const BYTE_OF: ReadonlyMap<string, number> = (() => {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const map = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) map.set(String.fromCodePoint(printable(byte) ? byte : next++), byte);
  return map;
})();

/** Returns the bytes of a byte-level token; null if one of its characters is not in the alphabet. */
export function byteLevelBytes(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTE_OF.get(token.charAt(i));
    if (byte === undefined) return null;
    bytes[i] = byte;
  }
  return bytes;
}
