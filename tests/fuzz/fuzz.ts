import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { search } from './search.ts';
import { TARGETS } from './targets.ts';
import { startWatch } from './watch.ts';

/*
 * `npm run fuzz [target] [seconds] [-- --seed N --save]`: searches for inputs that break the parsers of untrusted data.
 * A finding is added to the corpus, so it is tried first until it is fixed; `--save` keeps inputs that reached new
 * code, too. The corpus is one file a parser, with one input in base64 on each line.
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
  const file = join(CORPUS, `${name}.base64`);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  const corpus = [new Uint8Array(0), ...lines.map((line) => new Uint8Array(Buffer.from(line, 'base64')))];
  const watch = startWatch(HANG_MS);
  const report = await search(target, { corpus, seed, seconds, onInput: watch.onInput });
  watch.end();
  const keep = (...inputs: Uint8Array[]) => {
    lines.push(...inputs.map((input) => Buffer.from(input).toString('base64')));
    writeFileSync(file, `${lines.join('\n')}\n`);
  };
  const short = report.reached.filter(({ length }) => length <= MOST_KEPT);
  if (values.save && short.length > 0) keep(...short);
  console.log(
    `${name}: ${report.runs} inputs in ${seconds} s with seed ${seed}, ${corpus.length} from the corpus; ` +
      `${report.blocks} blocks, ${report.reached.length} inputs reached new ones`,
  );
  if (report.finding === null) continue;
  keep(report.finding.input);
  console.error(`FOUND the last input of ${file}`, report.finding.error);
  process.exitCode = 1;
}
