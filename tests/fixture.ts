import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { join as joinNames } from 'node:path/posix';
import { inflateSync } from 'node:zlib';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const UNPACKED = join(import.meta.dirname, '../node_modules/.cache/fixtures');

/**
 * Returns the path of a file or folder under `tests/fixtures`. One that is packed (`models/genai/llama` in
 * `llama.txtar`, by `tests/fixtures/pack.py`) is unpacked first; those that programs outside of the tests read are
 * plain. Copy it before you change it.
 */
export function fixture(path: string): string {
  const plain = join(FIXTURES, path);
  if (existsSync(plain)) return plain;
  const names = path.split('/');
  for (const [i] of names.entries()) {
    const folder = join(FIXTURES, ...names.slice(0, i + 1));
    if (existsSync(`${folder}.txtar`)) return join(unpacked(folder), ...names.slice(i + 1));
  }
  return plain;
}

export const readFixture = (path: string): string => readFileSync(fixture(path), 'utf8');

/** Returns the folder of a model: `genai/llama` of `tests/fixtures/models`, `../media/smolvlm`, or an absolute path. */
export function modelFixture(path: string): string {
  return isAbsolute(path) ? path : fixture(joinNames('models', path));
}

const found = new Map<string, string>();

/** Returns the folder of a packed fixture's files; the hash of their contents names it. */
function unpacked(folder: string): string {
  const known = found.get(folder);
  if (known) return known;
  const text = partsOf(folder).join('');
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 24);
  const target = join(UNPACKED, hash, basename(folder));
  if (!existsSync(target)) unpack(text, join(UNPACKED, hash), basename(folder));
  found.set(folder, target);
  return target;
}

function partsOf(folder: string): string[] {
  const parts = [readFileSync(`${folder}.txtar`, 'utf8')];
  for (let n = 2; existsSync(`${folder}.part${n}.txtar`); n += 1)
    parts.push(readFileSync(`${folder}.part${n}.txtar`, 'utf8'));
  return parts;
}

/** Writes the files into a folder of their own first, as other processes may do the same at this moment. */
function unpack(text: string, target: string, name: string): void {
  const draft = `${target}-${randomUUID()}`;
  const [, ...entries] = text.split(/^-- (.+?)( \(deflate\))? --\n/m);
  for (let i = 0; i < entries.length; i += 3) {
    const [path, deflated, body] = entries.slice(i, i + 3) as [string, string | undefined, string];
    const file = join(draft, name, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deflated ? inflateSync(Buffer.from(body, 'base64')) : body.slice(0, -1));
  }
  try {
    renameSync(draft, target);
  } catch (error) {
    if (!existsSync(join(target, name))) throw error;
    rmSync(draft, { recursive: true });
  }
}
