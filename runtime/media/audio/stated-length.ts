import type { Codec } from '../sniff.ts';

/** Holds the length of a recording: samples of each channel, at a rate in samples per second. */
export interface StatedLength {
  samples: number;
  rate: number;
  /** Number of channels; absent if unknown. */
  channels?: number;
}

/**
 * Returns the length that a file's headers state, or a lower bound of that length, without decoding the file; null if
 * they state none. Headers may lie, so the decoded length must be bounded too. `readWav` does the same for WAV files.
 */
export function statedLength(codec: Exclude<Codec, 'wav'>, bytes: Uint8Array): StatedLength | null {
  if (codec === 'flac') return flacLength(bytes);
  return codec === 'mp3' ? mp3Length(bytes) : oggLength(codec, bytes);
}

/**
 * Reads a FLAC file's first metadata block (RFC 9639, section 8.2). The block states 0 samples if the encoder did not
 * know the length.
 */
function flacLength(bytes: Uint8Array): StatedLength | null {
  if (bytes.length < 26) return null;
  const view = viewOf(bytes);
  // The block must have type 0 and 34 bytes. Its first bit, which marks the last block, is ignored.
  if ((view.getUint32(4) & 0x7fffffff) !== 34) return null;
  const samples = (view.getUint8(21) & 15) * 2 ** 32 + view.getUint32(22);
  const channels = ((view.getUint8(20) >> 1) & 7) + 1;
  return samples === 0 ? null : { samples, rate: view.getUint32(18) >>> 12, channels };
}

/** Sample rates of MPEG 1; MPEG 2 has half of them, and MPEG 2.5 a quarter (ISO 11172-3, 13818-3). */
const MPEG_RATES = [44_100, 48_000, 32_000];
/** Maximum samples of silence that an encoder may add at each end: LAME's header has 12 bits for each number. */
const MOST_ADDED = 4095;

function mp3Length(bytes: Uint8Array): StatedLength | null {
  const { frame, frames } = xingHeader(bytes) ?? {};
  const [, second = 0, third = 0] = frame ?? [];
  const rate = MPEG_RATES[(third >> 2) & 3];
  if (frames === undefined || rate === undefined) return null;
  const version = (second >> 3) & 3;
  const shift = version === 3 ? 0 : version === 2 ? 1 : 2;
  const samples = frames * (version === 3 ? 1152 : 576) - 2 * MOST_ADDED;
  return { samples: Math.max(0, samples), rate: rate >> shift };
}

/** Holds what an MP3 file's first frame states about the whole file, if its encoder wrote a Xing or LAME header. */
export interface XingHeader {
  /** The first bytes of the frame. */
  frame: Uint8Array;
  /** Offset of the frame in the file, after the ID3 tag. */
  offset: number;
  frames?: number;
  /** Number of bytes from the beginning of the frame to the end of the recording. */
  bytes?: number;
}

/** Returns the Xing or LAME header of an MP3 file; null if it has none. */
export function xingHeader(bytes: Uint8Array): XingHeader | null {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const offset = file.toString('latin1', 0, 3) === 'ID3' ? 10 + id3Length(file) : 0;
  const frame = file.subarray(offset, offset + 200);
  const at = Math.max(frame.indexOf('Xing'), frame.indexOf('Info'));
  if (at < 0 || at + 16 > frame.length) return null;
  const flags = frame.readUInt32BE(at + 4);
  const hasFrames = (flags & 1) !== 0;
  return {
    frame,
    offset,
    ...(hasFrames ? { frames: frame.readUInt32BE(at + 8) } : {}),
    ...((flags & 2) !== 0 ? { bytes: frame.readUInt32BE(at + (hasFrames ? 12 : 8)) } : {}),
  };
}

/**
 * Returns the number of bytes that follow the header of an ID3v2 tag. The header states it with 7 bits in each byte.
 */
function id3Length(file: Buffer): number {
  return [...file.subarray(6, 10)].reduce((length, byte) => length * 128 + (byte & 127), 0);
}

/**
 * Returns the number of samples from the end of the first page with audio to the end of the last. Each page states the
 * position of its end, and a recording of a live stream does not begin at 0 (RFC 3533, section 6; RFC 7845, section 4).
 * Pages of other streams are skipped.
 */
function oggLength(codec: 'vorbis' | 'opus', bytes: Uint8Array): StatedLength | null {
  const view = viewOf(bytes);
  const packet = 27 + (bytes[26] ?? 0);
  if (bytes.length < packet + 16) return null;
  const stream = view.getUint32(14, true);
  let [first, last] = [0n, 0n];
  for (let page = 0; page + 27 <= bytes.length && view.getUint32(page) === OGG_PAGE; ) {
    const position = view.getBigInt64(page + 6, true);
    if (view.getUint32(page + 14, true) === stream && position > 0n) {
      if (first === 0n) first = position;
      last = position;
    }
    const segments = bytes[page + 26] ?? 0;
    const table = bytes.subarray(page + 27, page + 27 + segments);
    page += 27 + segments + table.reduce((sum, length) => sum + length, 0);
  }
  // Positions in Opus are in samples at 48 kHz, whatever the rate of the source was.
  const rate = codec === 'opus' ? 48_000 : view.getUint32(packet + 12, true);
  return last > first ? { samples: Number(last - first), rate } : null;
}

/** The letters `OggS` as a 32-bit big-endian number. */
const OGG_PAGE = 0x4f676753;

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
