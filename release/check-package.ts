import { execFileSync } from 'node:child_process';
import { type Packed, packageFigures, packageProblems } from './package-contents.ts';

/* `npm run package:check`, after a build: prints the package's size; fails if it is too large or has stray files. */

const listing = execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const [packed] = JSON.parse(listing) as [Packed];
const problems = packageProblems(packed);
console.log([packageFigures(packed), ...problems].join('\n'));
process.exitCode = problems.length === 0 ? 0 : 1;
