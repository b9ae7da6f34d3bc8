import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { clientContract, type Form } from './client-contract.ts';
import { ROOT, WORK } from './paths.ts';

const text = readFileSync(`${ROOT}openapi.json`);
const contract = JSON.parse(text.toString()) as Parameters<typeof clientContract>[0];

/** Version of the contract and of every package. */
export const VERSION = String(contract.info.version);
/** SHA-256 of `openapi.json` in hex. Each package has it, to identify the contract that it was generated from. */
export const FINGERPRINT = createHash('sha256').update(text).digest('hex');

/** Writes the contract in the form that a generator needs. Returns the path of the file. */
export function writeContract(language: string, form: Form): string {
  const file = `${WORK}/${language}.json`;
  writeGenerated(file, `${JSON.stringify(clientContract(contract, form), null, 2)}\n`);
  return file;
}

/** Writes the text `wanted` to a generated file unless it is unchanged, which spares a new compilation. */
export function writeGenerated(file: string, wanted: string): void {
  mkdirSync(dirname(file), { recursive: true });
  if (readIfThere(file) !== wanted) writeFileSync(file, wanted);
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/**
 * Throws an `Error` if the manifest of a package has another version than the contract. The first group of `pattern`
 * captures the version.
 */
export function checkVersion(manifest: string, pattern: RegExp): void {
  const found = pattern.exec(readFileSync(manifest, 'utf8'))?.[1];
  if (found !== VERSION)
    throw new Error(`${manifest} has version ${found}, the contract has ${VERSION}. Change the manifest.`);
}
