export interface WavFields {
  rate?: number;
  channels?: number;
  bits?: number;
  /** Format tag: 1 is PCM, 3 floats. */
  tag?: number;
  /** Bytes of samples that the header states. */
  length?: number;
}

/** Makes a WAV file of this many 16-bit samples; its header says what the fields say. */
export function makeWav(fields: WavFields, samples = 800): Buffer {
  const { rate = 8000, channels = 1, bits = 16, tag = 1, length = samples * 2 } = fields;
  const head = Buffer.alloc(44);
  head.write('RIFF\0\0\0\0WAVEfmt ', 0, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(tag, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE((rate * channels * (bits / 8)) % 2 ** 32, 28);
  head.writeUInt16LE((channels * bits) / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36);
  head.writeUInt32LE(length, 40);
  return Buffer.concat([head, Buffer.alloc(samples * 2, 1)]);
}
