import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hashOf, search } from './search.ts';
import { TARGETS } from './targets.ts';
import { startWatch } from './watch.ts';

/*
 * `npm run fuzz [target] [seconds] [-- --seed N --save]`: searches for inputs that break the parsers of untrusted data.
 * A finding is written into the corpus, so it is tried first until it is fixed; `--save` keeps inputs that reached new
 * code, too.
 */

const CORPUS = join(import.meta.dirname, 'corpus');
/** Milliseconds after which an input counts as hanging. */
const HANG_MS = 20_000;
/** Longest input that is kept, in bytes, so that the corpus stays small. */
const MOST_KEPT = 4096;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, save: { type: 'boolean', default: false } },
});
const seconds = Number(positionals.find((one) => /^\d+$/.test(one)) ?? 60);
const wanted = positionals.filter((one) => !/^\d+$/.test(one));
const names = wanted.length > 0 ? wanted : Object.keys(TARGETS);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);

for (const name of names) {
  const target = TARGETS[name];
  if (!target || !Number.isSafeInteger(seed)) {
    console.error(`Targets are ${Object.keys(TARGETS).join(', ')}; for example: npm run fuzz json 60 -- --seed 7`);
    process.exit(2);
  }
  const folder = join(CORPUS, name);
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  const corpus = [new Uint8Array(0), ...files.map((file) => new Uint8Array(readFileSync(join(folder, file))))];
  const watch = startWatch(HANG_MS);
  const report = await search(target, { corpus, seed, seconds, onInput: watch.onInput });
  watch.end();
  const keep = (input: Uint8Array) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, hashOf(input)), input);
  };
  const short = report.reached.filter(({ length }) => length <= MOST_KEPT);
  if (values.save) for (const input of short) keep(input);
  console.log(
    `${name}: ${report.runs} inputs in ${seconds} s with seed ${seed}, ${corpus.length} from the corpus; ` +
      `${report.blocks} blocks, ${report.reached.length} inputs reached new ones`,
  );
  if (report.finding === null) continue;
  keep(report.finding.input);
  console.error(`FOUND ${join(folder, hashOf(report.finding.input))}`, report.finding.error);
  process.exitCode = 1;
}
