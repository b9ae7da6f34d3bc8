import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import type { MediaPart } from '../../lib/contract/conversation.ts';

/** Holds an image that is refused, and the reason in the error. */
export interface BadImage {
  name: string;
  source: MediaPart['source'];
  reason: RegExp;
}

const FILES = {
  'image/png': 'wide.png',
  'image/jpeg': 'tall.jpg',
  'image/webp': 'square.webp',
  'image/gif': 'strip.gif',
} as const;
type Type = keyof typeof FILES;
const TYPES = Object.keys(FILES) as Type[];
const fileOf = (type: Type) => readFileSync(new URL(`../fixtures/media/images/${FILES[type]}`, import.meta.url));

const FORMAT = /is not in a supported format\. Send JPEG, PNG, WEBP, GIF\./u;
const DAMAGED = /cannot be decoded/u;
const LARGE = /more than 40 megapixels/u;

function bad(name: string, bytes: Uint8Array, mimeType: string, reason: RegExp): BadImage {
  return { name, source: { type: 'base64', data: Buffer.from(bytes).toString('base64'), mimeType }, reason };
}

/** Cuts each format at several places: behind its first bytes, in its headers, and in its pixels. */
function truncated(): BadImage[] {
  const places: [string, (length: number) => number][] = [
    ['12 bytes', () => 12],
    ['20 bytes', () => 20],
    ['40 bytes', () => 40],
    ['a fifth', (length) => Math.floor(length / 5)],
    ['a half', (length) => Math.floor(length / 2)],
  ];
  return TYPES.flatMap((type) =>
    places.map(([name, cut]) => {
      const bytes = fileOf(type);
      return bad(`${type} cut to ${name}`, bytes.subarray(0, cut(bytes.length)), type, DAMAGED);
    }),
  );
}

const latin = (text: string) => Buffer.from(text, 'latin1');
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">';

/** Files in other formats, some of which libvips or a browser would read or run. */
async function otherFormats(): Promise<BadImage[]> {
  const dot = sharp({ create: { width: 16, height: 16, channels: 3, background: 'red' } });
  const files: [string, Uint8Array][] = [
    ['nothing', Buffer.alloc(0)],
    ['one byte', Buffer.of(0xff)],
    ['zeros', Buffer.alloc(1000)],
    ['text', latin('hello')],
    ['SVG', latin(`${SVG}<rect width="9" height="9"/></svg>`)],
    ['SVG with a script', latin(`${SVG}<script>fetch("http://127.0.0.1/")</script></svg>`)],
    ['SVG with a file in it', latin(`${SVG}<image href="file:///etc/passwd" width="9" height="9"/></svg>`)],
    ['SVG with an entity', latin(`<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]>${SVG}<text>&x;</text></svg>`)],
    ['SVG behind white space', latin(`\n\n  <?xml version="1.0"?>${SVG}</svg>`)],
    ['packed SVG', latin('\x1f\x8b\x08\x00\x00\x00\x00\x00')],
    ['HTML', latin('<!doctype html><img src=x onerror=alert(1)>')],
    ['TIFF', await dot.clone().tiff().toBuffer()],
    ['AVIF', await dot.clone().avif().toBuffer()],
    ['HEIC', latin('\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic')],
    ['BMP', latin('BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00')],
    ['ICO', latin('\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00')],
    ['JPEG XL', latin('\xff\x0a\x00\x00')],
    ['JPEG 2000', latin('\x00\x00\x00\x0cjP  \r\n\x87\n')],
    ['PDF', latin('%PDF-1.7\n1 0 obj\n')],
    ['PSD', latin('8BPS\x00\x01\x00\x00')],
    ['OpenEXR', latin('v/1\x01\x02\x00\x00\x00')],
    ['PPM', latin('P6 1 1 255\nabc')],
    ['CSV of a matrix', latin('1,2,3\n4,5,6\n')],
    ['a video', latin('\x00\x00\x00\x20ftypisom\x00\x00\x02\x00')],
    ['a sound', latin('RIFF\x24\x00\x00\x00WAVEfmt ')],
    ['an archive', latin('PK\x03\x04\x14\x00\x00\x00')],
    ['a program', latin('\x7fELF\x02\x01\x01\x00')],
    ['an image behind a byte', Buffer.concat([Buffer.of(0), fileOf('image/png')])],
  ];
  return files.map(([name, bytes]) => bad(name, bytes, 'image/png', FORMAT));
}

/** Files that begin like one format and go on as something else. */
function polyglots(): BadImage[] {
  const files: [string, string, Type][] = [
    ['GIF and JavaScript', 'GIF89a=1;alert(document.cookie)//', 'image/gif'],
    ['GIF and HTML', 'GIF89a<script>alert(1)</script>', 'image/gif'],
    ['PNG and SVG', `\x89PNG\r\n\x1a\n${SVG}</svg>`, 'image/png'],
    ['PNG and PDF', '\x89PNG\r\n\x1a\n%PDF-1.7', 'image/png'],
    ['PNG and nothing', '\x89PNG\r\n\x1a\n', 'image/png'],
    ['JPEG and PHP', '\xff\xd8\xff\xe0<?php system($_GET[0]); ?>', 'image/jpeg'],
    ['JPEG and nothing', '\xff\xd8\xff', 'image/jpeg'],
    ['JPEG that only ends', '\xff\xd8\xff\xd9', 'image/jpeg'],
    ['WebP and nothing', 'RIFF\xff\xff\xff\xffWEBP', 'image/webp'],
    ['WebP of zeros', `RIFF\x10\x00\x00\x00WEBP${'\x00'.repeat(100)}`, 'image/webp'],
  ];
  return files.map(([name, text, type]) => bad(name, latin(text), type, DAMAGED));
}

/** Small files that say that they are huge. */
function bombs(): BadImage[] {
  const png = (width: number, height: number) => {
    const bytes = Buffer.from(fileOf('image/png'));
    bytes.writeUInt32BE(width, 16);
    bytes.writeUInt32BE(height, 20);
    // The checksum of the header, which libpng reads.
    bytes.writeUInt32BE(crc32(bytes.subarray(12, 29)), 29);
    return bytes;
  };
  const jpeg = Buffer.from(fileOf('image/jpeg'));
  const frame = jpeg.indexOf(Buffer.of(0xff, 0xc0)) + 5;
  jpeg.writeUInt16BE(65_500, frame);
  jpeg.writeUInt16BE(65_500, frame + 2);
  const webp = Buffer.from(fileOf('image/webp'));
  // Two sides of 14 bits, both less one, behind the signature of a lossless image.
  webp.writeUInt32LE(16_382 | (16_382 << 14), webp.indexOf('VP8L') + 9);
  const side = '\xff\xff\xff\xff';
  const gif = latin(`GIF89a${side}\x00\x00\x00\x2c\x00\x00\x00\x00${side}\x00\x02\x02\x4c\x01\x00\x3b`);
  return [
    bad('PNG of 60000 x 60000', png(60_000, 60_000), 'image/png', LARGE),
    bad('PNG of 1000000 x 41', png(1_000_000, 41), 'image/png', /40 megapixels|cannot be decoded/u),
    bad('PNG a little too large', png(6_400, 6_251), 'image/png', LARGE),
    bad('JPEG of 65500 x 65500', jpeg, 'image/jpeg', LARGE),
    bad('WebP of 16383 x 16383', webp, 'image/webp', LARGE),
    bad('GIF of 65535 x 65535', gif, 'image/gif', /40 megapixels|cannot be decoded/u),
    bad('PNG without width', png(0, 10), 'image/png', DAMAGED),
  ];
}

function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function damaged(): BadImage[] {
  const png = Buffer.from(fileOf('image/png'));
  png.fill(0x55, 60, 200);
  const webp = Buffer.from(fileOf('image/webp'));
  webp.fill(0xaa, 30);
  return [
    bad('PNG with wrong pixels', png, 'image/png', DAMAGED),
    bad('WebP with wrong pixels', webp, 'image/webp', DAMAGED),
  ];
}

function badSources(): BadImage[] {
  const data = fileOf('image/png').toString('base64');
  const base64 = (name: string, text: string): BadImage => {
    return { name, source: { type: 'base64', data: text, mimeType: 'image/png' }, reason: /not valid base64/u };
  };
  const url = (name: string, text: string, reason: RegExp): BadImage => ({
    name,
    source: { type: 'url', url: text },
    reason,
  });
  return [
    base64('base64 that is cut', data.slice(0, -1)),
    base64('base64 with a wrong letter', `${data.slice(0, 100)}!${data.slice(101)}`),
    base64('base64 in hexadecimal with a colon', 'ab:c'),
    base64('base64url', '-_-_'),
    url('a data URL with wrong base64', `data:image/png;base64,${data}=`, /not valid base64/u),
    url('a data URL with percent signs', 'data:image/png;base64,iVBORw0KGgo%3D', /not valid base64/u),
    url('a data URL without base64', 'data:image/png,hello', /neither a data: URL/u),
    url('an address', 'https://example.com/a.png', /does not fetch from/u),
    url('an address of this machine', 'http://127.0.0.1:8080/a.png', /does not fetch from/u),
    url('a file', 'file:///etc/passwd', /neither a data: URL/u),
    url('a script', 'javascript:alert(1)', /neither a data: URL/u),
  ];
}

/** Returns all of them. */
export async function badImages(): Promise<BadImage[]> {
  return [...truncated(), ...(await otherFormats()), ...polyglots(), ...bombs(), ...damaged(), ...badSources()];
}
