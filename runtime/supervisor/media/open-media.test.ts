import { expect, test } from 'vitest';
import { openMedia } from './open-media.ts';

test('a request for a file that the call lacks is a fault to report', async () => {
  const unused = () => Promise.reject(new Error('no file is decoded'));
  const counts = { opened: () => undefined, decoded: () => undefined, refused: () => undefined };
  const media = openMedia(
    { size: unused, samples: unused, prepare: unused },
    { kind: 'image', counts, fetcher: undefined },
  );
  const plan = { filter: 'box' as const, sizes: [], rows: 0, columns: 0, tile: { width: 1, height: 1 } };
  const wanted = { sha256: 'a'.repeat(64), detail: 'low' as const, plan };
  await expect(media.prepare([wanted], new AbortController().signal)).rejects.toMatchObject({
    code: 'engine_failed',
    message: expect.stringMatching(/ the request lacks\. This is a fault in Assay\. Try again; .*x-request-id/u),
  });
});
