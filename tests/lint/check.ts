import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { assertionViolation, countAssertions } from './assertions.ts';
import { commentViolations } from './comments.ts';
import { sizeViolation } from './file-size.ts';
import { layerViolations } from './layers.ts';
import { ExportedNames } from './names.ts';

/*
 * The part of `npm run lint` that Biome has no rule for: which folder may import which (layers.ts), comments
 * (comments.ts), the number of non-null assertions (assertions.ts), names that two files export (names.ts) and the size
 * of files (file-size.ts). Prints each fault on a line; exits with 1 if there is one.
 */

const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
});
const files = listed.split('\0').filter((file) => file !== '' && existsSync(file));
let assertions = 0;
const names = new ExportedNames();
const faults = files.flatMap((file) => {
  const size = sizeViolation(file, statSync(file).size);
  if (!/\.tsx?$/.test(file)) return size;
  const source = readFileSync(file, 'utf8');
  names.add(file, source);
  if (!file.endsWith('.ts')) return size;
  assertions += countAssertions(file, source);
  return [...size, ...layerViolations(file, source), ...commentViolations(file, source)];
});
faults.push(...assertionViolation(assertions), ...names.violations());
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
