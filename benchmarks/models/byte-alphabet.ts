/**
 * Returns the 256 characters that stand for the bytes 0 to 255 in byte-level BPE
 * (`runtime/text/tokenizer/vocabulary.ts`).
 */
export function byteAlphabet(): string[] {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : 256 + others++));
}
