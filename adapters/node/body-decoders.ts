import { Duplex } from 'node:stream';
import * as zlib from 'node:zlib';
import { type BodyDecoders, STANDARD_DECODERS } from '../../lib/json/body.ts';

/** Largest window of a zstd body, 8 MiB, as RFC 9659 prescribes: a frame may ask for gigabytes of memory. */
const ZSTD_WINDOW_LOG = 23;

const web = (stream: Duplex) => Duplex.toWeb(stream) as ReadableWritablePair<Uint8Array, Uint8Array>;

/** The content encodings that Node decodes. Node before 22.15 has no zstd. */
export const NODE_DECODERS: BodyDecoders = {
  ...('createZstdDecompress' in zlib && {
    zstd: () => web(zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } })),
  }),
  ...STANDARD_DECODERS,
  br: () => web(zlib.createBrotliDecompress()),
};
