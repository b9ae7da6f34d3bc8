export interface SilentFlac {
  seconds: number;
  rate: 8_000 | 16_000 | 48_000 | 192_000;
  channels: number;
  /** Samples of each channel that the header states; the true number by default, 0 for "unknown". */
  stated?: number;
  /** Makes files with the same samples differ. */
  salt?: number;
}

const BLOCK = 32_768;
/** Codes of the sample rates in a frame's header (RFC 9639, section 9.1.2). */
const RATE_CODES = { 8000: 4, 16000: 5, 48000: 10, 192000: 3 };

/** Makes a FLAC file of silence: three bytes for each channel of a block of 32,768 samples. */
export function silentFlac({ seconds, rate, channels, stated, salt = 0 }: SilentFlac): Buffer {
  const blocks = Math.max(1, Math.floor((seconds * rate) / BLOCK));
  const info = Buffer.alloc(34);
  info.writeUInt16BE(BLOCK, 0);
  info.writeUInt16BE(BLOCK, 2);
  const samples = BigInt(stated ?? blocks * BLOCK);
  info.writeBigUInt64BE((BigInt(rate) << 44n) | (BigInt(channels - 1) << 41n) | (15n << 36n) | samples, 10);
  const application = Buffer.alloc(12);
  application.writeUInt32BE(salt, 8);
  const frames = Array.from({ length: blocks }, (_, i) => {
    const head = [0xff, 0xf8, (15 << 4) | RATE_CODES[rate], ((channels - 1) << 4) | (4 << 1), ...utf8(i)];
    // Each channel is a constant subframe: a header of one byte, and the sample 0 in 16 bits.
    const frame = Buffer.from([...head, crc8(head), ...new Array<number>(3 * channels).fill(0)]);
    return Buffer.concat([frame, crc16(frame)]);
  });
  return Buffer.concat([Buffer.from('fLaC'), block(0, info), block(0x82, application), ...frames]);
}

function block(type: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, 0, 0, bytes.length]), bytes]);
}

/** Returns a number as FLAC codes it, as UTF-8 codes a character. */
function utf8(n: number): number[] {
  if (n < 0x80) return [n];
  if (n < 0x800) return [0xc0 | (n >> 6), 0x80 | (n & 63)];
  return [0xe0 | (n >> 12), 0x80 | ((n >> 6) & 63), 0x80 | (n & 63)];
}

function crc8(bytes: readonly number[]): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80 ? (crc << 1) ^ 0x07 : crc << 1) & 0xff;
  }
  return crc;
}

function crc16(bytes: Uint8Array): Buffer {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x8005 : crc << 1) & 0xffff;
  }
  return Buffer.from([crc >> 8, crc & 0xff]);
}
