import { mkdir, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';

/**
 * Signature of a single-file .NET program: the SHA-256 of ".net core bundle". The 8 bytes before it are the offset of
 * the list of files.
 */
const SIGNATURE = Buffer.from('8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae', 'hex');

/**
 * Writes the files of a single-file .NET program that `wanted` selects into `folder`. Reads version 6 of the format
 * (dotnet/designs, accepted/2020/single-file/bundler.md).
 */
export async function unpackSingleFile(
  program: Buffer,
  folder: string,
  wanted: (name: string) => boolean,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const { name, bytes, compressed } of filesOf(program)) {
    if (wanted(name)) await writeFile(`${folder}/${name}`, compressed ? await promisify(inflateRaw)(bytes) : bytes);
  }
}

/** Sizes in bytes of fixed parts of the list of files; see bundler.md. */
const HEAD = 12;
const PLACES_OF_CONFIGURATION_AND_FLAGS = 40;
const NUMBERS_AND_KIND = 25;

function* filesOf(program: Buffer): Generator<{ name: string; bytes: Buffer; compressed: boolean }> {
  const begin = numberAt(program, program.indexOf(SIGNATURE) - 8);
  const version = program.readUInt32LE(begin);
  if (version !== 6) throw new Error(`The bundle has version ${version}, not 6.`);
  const id = textAt(program, begin + HEAD);
  let at = id.end + PLACES_OF_CONFIGURATION_AND_FLAGS;
  for (let left = program.readInt32LE(begin + 8); left > 0; left--) {
    const [offset, size, packed] = [at, at + 8, at + 16].map((place) => numberAt(program, place)) as [
      number,
      number,
      number,
    ];
    const name = textAt(program, at + NUMBERS_AND_KIND);
    yield { name: name.text, bytes: program.subarray(offset, offset + (packed || size)), compressed: packed > 0 };
    at = name.end;
  }
}

function numberAt(program: Buffer, at: number): number {
  return Number(program.readBigInt64LE(at));
}

/**
 * Reads a text with its length in front. The length, in bytes, has 7 bits in each byte, lowest first; two bytes are
 * enough for every length here.
 */
function textAt(program: Buffer, start: number): { text: string; end: number } {
  const low = program.readUInt8(start);
  const [length, from] = low < 128 ? [low, start + 1] : [(low & 127) + program.readUInt8(start + 1) * 128, start + 2];
  return { text: program.toString('utf8', from, from + length), end: from + length };
}
