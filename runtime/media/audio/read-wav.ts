import { AudioFault } from './limits.ts';

/** Describes the format of a WAV file, and reads its samples. */
export interface Wav {
  /** Frames per second. */
  rate: number;
  channels: number;
  /** Number of frames; a frame has one sample of each channel. */
  frames: number;
  /**
   * Returns the frames from `from` up to, but not including, `to`: for each the mean of its channels, with a full scale
   * from −1 to 1.
   */
  read(from: number, to: number): Float32Array;
}

const [PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE] = [1, 3, 6, 7, 0xfffe];

/**
 * Reads the header of a RIFF/WAVE file. Supports integers of 8, 16, 24 and 32 bits, floats of 32 and 64 bits, A-law and
 * µ-law. Source: Microsoft's "Multiple Channel Audio Data and WAVE Files", ITU-T G.711. Throws `AudioFault` for a
 * damaged or unsupported file.
 */
export function readWav(bytes: Uint8Array): Wav {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let format: { tag: number; channels: number; rate: number; block: number; bits: number } | null = null;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const id = String.fromCharCode(...bytes.subarray(at, at + 4));
    const stated = view.getUint32(at + 4, true);
    const from = at + 8;
    if (id === 'fmt ') format = readFormat(view, from, stated);
    if (id === 'data') {
      if (!format) throw unreadable('it has no fmt chunk before its samples');
      // Programs that write to a pipe cannot go back to state the length, so they leave 0 or the largest number.
      const open = stated === 0xffffffff || (stated === 0 && !isChunks(view, from));
      const length = open ? bytes.length - from : stated;
      if (from + length > bytes.length) throw unreadable('it is cut off');
      return samplesOf(view, from, Math.floor(length / format.block), format);
    }
    at = from + stated + (stated % 2);
  }
  throw unreadable('it has no data chunk');
}

/** Tells whether chunks with readable ids fill the file from `start` to its end. */
function isChunks(view: DataView, start: number): boolean {
  let at = start;
  while (at + 8 <= view.byteLength && [0, 1, 2, 3].every((i) => isPrintable(view.getUint8(at + i)))) {
    const stated = view.getUint32(at + 4, true);
    at += 8 + stated + (stated % 2);
  }
  return at === view.byteLength;
}

function isPrintable(byte: number): boolean {
  return byte >= 0x20 && byte <= 0x7e;
}

function readFormat(view: DataView, from: number, length: number) {
  if (length < 16 || from + length > view.byteLength) throw unreadable('its fmt chunk is cut off');
  const stated = view.getUint16(from, true);
  const tag = stated === EXTENSIBLE && length >= 26 ? view.getUint16(from + 24, true) : stated;
  const channels = view.getUint16(from + 2, true);
  const rate = view.getUint32(from + 4, true);
  const block = view.getUint16(from + 12, true);
  const bits = view.getUint16(from + 14, true);
  if (!READERS.has(`${tag}/${bits}`)) {
    throw new AudioFault('encoding', `its format ${tag} with ${bits} bits is not known`);
  }
  if (channels === 0 || block !== (channels * bits) / 8) throw unreadable('its fmt chunk contradicts itself');
  return { tag, channels, rate, block, bits };
}

function samplesOf(
  view: DataView,
  start: number,
  frames: number,
  { tag, channels, rate, block, bits }: ReturnType<typeof readFormat>,
): Wav {
  const sample = READERS.get(`${tag}/${bits}`)!;
  return {
    rate,
    channels,
    frames,
    read(from, to) {
      return Float32Array.from({ length: to - from }, (_, i) => {
        let sum = 0;
        const at = start + (from + i) * block;
        for (let channel = 0; channel < channels; channel++) sum += sample(view, at + (channel * bits) / 8);
        return sum / channels;
      });
    },
  };
}

/** Functions that read one sample, by format tag and bits per sample. */
const READERS = new Map<string, (view: DataView, at: number) => number>([
  [`${PCM}/8`, (view, at) => (view.getUint8(at) - 128) / 128],
  [`${PCM}/16`, (view, at) => view.getInt16(at, true) / 2 ** 15],
  [`${PCM}/24`, (view, at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 65536) / 2 ** 23],
  [`${PCM}/32`, (view, at) => view.getInt32(at, true) / 2 ** 31],
  [`${FLOAT}/32`, (view, at) => finite(view.getFloat32(at, true))],
  [`${FLOAT}/64`, (view, at) => finite(view.getFloat64(at, true))],
  [`${A_LAW}/8`, (view, at) => fromALaw(view.getUint8(at))],
  [`${MU_LAW}/8`, (view, at) => fromMuLaw(view.getUint8(at))],
]);

function finite(value: number): number {
  if (!(Math.abs(value) < 1e6)) throw unreadable('it has a sample that is no number');
  return value;
}

function fromMuLaw(code: number): number {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 15) << 3) + 132) << ((bits >> 4) & 7)) - 132;
  return (bits & 128 ? -magnitude : magnitude) / 2 ** 15;
}

function fromALaw(code: number): number {
  const bits = code ^ 0x55;
  const exponent = (bits >> 4) & 7;
  const mantissa = ((bits & 15) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 256) << (exponent - 1);
  return (bits & 128 ? magnitude : -magnitude) / 2 ** 15;
}

function unreadable(why: string): AudioFault {
  return new AudioFault('undecodable', why);
}
