import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import sharp from 'sharp';
import { afterAll, describe, expect, it } from 'vitest';
import type { MediaPart } from '../../lib/contract/conversation.ts';
import type { Work } from '../../runtime/protocol/messages.ts';
import { openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { openMedia } from '../../runtime/supervisor/media/open-media.ts';
import { badImages } from './bad-images.ts';

const media = new MediaProcess({ log: pino({ level: 'silent' }), isolation: await openIsolation('auto') });
afterAll(() => media.close());

/** The one tile that the model's low detail would be. */
const PLAN = {
  filter: 'lanczos' as const,
  sizes: [{ width: 64, height: 64 }],
  rows: 0,
  columns: 0,
  tile: { width: 64, height: 64 },
};

/** Opens an image and decodes it, as for a request about it. */
async function read(source: MediaPart['source']) {
  const counts = { opened() {}, decoded() {}, refused() {} };
  const image: MediaPart = { type: 'image', source, param: 'messages[0].content[0]' };
  const request = {
    messages: [{ role: 'user' as const, parts: [image] }],
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
  };
  const work: Work = { kind: 'chat', request: { ...request, format: { type: 'text' } } };
  const call = openMedia(media, { kind: 'image', counts, fetcher: undefined });
  const { signal } = new AbortController();
  const opened = await call.open(work, signal);
  const [part] = opened.kind === 'chat' ? (opened.request.messages[0]?.parts ?? []) : [];
  if (part?.type !== 'image' || !part.opened) throw new Error('the image was not opened');
  const { sha256, ...size } = part.opened;
  const [pixels] = await call.prepare([{ sha256, detail: 'low', plan: PLAN }], signal);
  return { size, data: pixels?.data };
}

const good = (bytes: Uint8Array, mimeType: string): MediaPart['source'] => {
  return { type: 'base64', data: Buffer.from(bytes).toString('base64'), mimeType };
};
const PNG = readFileSync(new URL('../fixtures/media/images/wide.png', import.meta.url));

describe('refused with the path of the image', async () => {
  const rows = await badImages();

  it('are at least 75', () => expect(rows.length).toBeGreaterThanOrEqual(75));

  it.each(rows)('$name', async ({ source, reason }) => {
    await expect(read(source)).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'messages[0].content[0]',
      message: expect.stringMatching(reason),
    });
  });

  it('by one and the same process, which still reads images', async () => {
    const { pid } = media;
    expect((await read(good(PNG, 'image/png'))).size).toEqual({ width: 100, height: 60 });
    expect(pid).not.toBe(null);
    expect(media.pid).toBe(pid);
    if (process.platform !== 'linux') return;
    // Of the process that was started: a shell or bwrap may be in front of Node.
    const peak = /VmHWM:\s*(\d+) kB/u.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    expect(Number(peak)).toBeLessThan(1024 * 1024);
  });
});

describe('unusual, and read', async () => {
  const raw = Buffer.from(Array.from({ length: 30 * 20 * 3 }, (_, i) => (i * 7) % 256));
  const image = () => sharp(raw, { raw: { width: 30, height: 20, channels: 3 } });
  /** Two frames, one above the other. */
  const animation = () =>
    sharp(Buffer.concat([raw, Buffer.alloc(raw.length)]), {
      raw: { width: 30, height: 40, channels: 3, pageHeight: 20 },
    })
      .gif({ loop: 0 })
      .toBuffer();
  const orientations = [1, 2, 3, 4, 5, 6, 7, 8];
  it.each<[string, () => Promise<Buffer>, string]>([
    [
      'one pixel',
      () =>
        sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } })
          .png()
          .toBuffer(),
      'image/png',
    ],
    [
      'a long strip',
      () =>
        sharp({ create: { width: 2000, height: 1, channels: 3, background: 'red' } })
          .png()
          .toBuffer(),
      'image/png',
    ],
    ['grey', () => image().greyscale().png().toBuffer(), 'image/png'],
    ['16 bits', () => image().toColourspace('rgb16').png().toBuffer(), 'image/png'],
    ['a palette', () => image().png({ palette: true, colours: 8 }).toBuffer(), 'image/png'],
    ['alpha', () => image().ensureAlpha(0.5).webp().toBuffer(), 'image/webp'],
    ['CMYK', () => image().toColourspace('cmyk').jpeg().toBuffer(), 'image/jpeg'],
    ['progressive', () => image().jpeg({ progressive: true }).toBuffer(), 'image/jpeg'],
    ['interlaced', () => image().png({ progressive: true }).toBuffer(), 'image/png'],
    ['an animation', () => animation(), 'image/gif'],
    ['with bytes behind its end', async () => Buffer.concat([PNG, Buffer.from('<script>')]), 'image/png'],
  ])('%s', async (_, make, type) => {
    expect((await read(good(await make(), type))).data?.length).toBe(64 * 64 * 3);
  });

  it.each(orientations)('EXIF orientation %i', async (orientation) => {
    const bytes = await image().withMetadata({ orientation }).jpeg({ quality: 100 }).toBuffer();
    const { size, data } = await read(good(bytes, 'image/jpeg'));
    expect(size).toEqual(orientation > 4 ? { width: 20, height: 30 } : { width: 30, height: 20 });
    const upright = await read(good(await sharp(bytes).autoOrient().png().toBuffer(), 'image/png'));
    expect(data).toEqual(upright.data);
  });
});
