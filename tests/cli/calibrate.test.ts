import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serverConfig } from '../../adapters/node/config.ts';
import { serve } from '../../adapters/node/serve.ts';
import { composeScripted } from '../scripted-backend/compose.ts';
import { assay, newFolder } from './assay.ts';

const FINGERPRINT = 'ab'.repeat(32);
const POLICY = 'cd'.repeat(32);

/** A server whose model says yes with 0.9 to every question, and the command line beside it. */
async function beside() {
  const home = await newFolder();
  const script = {
    models: [{ id: 'assay/starter', status: 'active' as const, fingerprint: FINGERPRINT, policy_fingerprint: POLICY }],
    tasks: { probabilities: Array(64).fill([0.9, 0.1]) },
  };
  const effects = { log: pino({ level: 'silent' }), say: () => undefined, terminal: true };
  const config = serverConfig({ port: '0', home, load: false }, {});
  const serving = await serve(config, { ...effects, compose: composeScripted(script) });
  onTestFinished(() => void serving.stop());
  const env = { ASSAY_URL: serving.url, ASSAY_HOME: home };
  const run = (...args: string[]) => assay(['calibrate', ...args], { env });
  const evaluate = (...args: string[]) => assay(['eval', ...args], { env });
  const file = join(home, 'labels.jsonl');
  return { run, evaluate, home, file, stored: join(home, 'calibrations', `${FINGERPRINT}.json`) };
}

/** 40 questions, of which the model is right in 24. */
const LABELS = Array.from({ length: 40 }, (_, i) =>
  JSON.stringify({ input: `Text ${i % 3}`, type: 'predicate', instructions: 'Paid?', label: i < 24 }),
);

describe('calibrate', () => {
  it('fits a temperature, tells what it gains, stores it and draws it', async () => {
    const { run, file, home, stored } = await beside();
    await writeFile(file, LABELS.join('\n'));
    const plot = join(home, 'plot.svg');
    const { code, out, err } = await run(file, '--plot', plot);
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining(stored) });
    expect(out).toMatch(/^KIND +LABELS +TEMPERATURE +ECE BEFORE +AFTER +BRIER BEFORE +AFTER\npredicate +40 /);
    const { fingerprint, kinds } = JSON.parse(await readFile(stored, 'utf8'));
    expect(fingerprint).toBe(FINGERPRINT);
    // It was 90% sure and 60% right: the temperature at which it is 60% sure is ln 9 / ln 1.5.
    expect(kinds.predicate.temperature).toBeCloseTo(Math.log(9) / Math.log(1.5), 1);
    expect(kinds.predicate.before.ece).toBeCloseTo(0.3, 6);
    expect(kinds.predicate.after.ece).toBeLessThan(0.1);
    expect(await readFile(plot, 'utf8')).toMatch(/^<svg .*predicate, before.*predicate, after.*<\/svg>\n$/s);
    expect(JSON.parse((await run('--reset', '--json')).out)).toEqual({ fingerprint: FINGERPRINT, removed: true });
    expect(JSON.parse((await run('--reset', '--json')).out)).toEqual({ fingerprint: FINGERPRINT, removed: false });
    await run(file);
    expect(await run('--reset')).toMatchObject({ code: 0, err: expect.stringContaining('Removed.') });
    expect(existsSync(stored)).toBe(false);
  });

  it('certifies thresholds on labels that were held out, and says what is missing', async () => {
    const { run, file, stored } = await beside();
    const labels = (count: number, wrong: number) =>
      Array.from({ length: count }, (_, i) =>
        JSON.stringify({ input: `Text ${i}`, type: 'predicate', instructions: 'Paid?', label: i >= wrong }),
      );
    await writeFile(file, labels(200, 1).join('\n'));
    const { code, out } = await run(file, '--target-error', '0.05', '--target-error', '0.01');
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringContaining('not enough labels: 299 without an error'),
    });
    const { thresholds } = JSON.parse(await readFile(stored, 'utf8'));
    expect(thresholds).toMatchObject({
      method: 'ltt-fixed-sequence',
      confidence: 0.95,
      fingerprint: POLICY,
      orders: 1,
      targets: [
        { target_error: 0.05, groups: { predicate: { labels: 100, accepted: 100, errors: 0, coverage: 1 } } },
        { target_error: 0.01, groups: { predicate: { threshold: null } } },
      ],
    });
    expect(thresholds.targets[0].groups.predicate.error_upper).toBeLessThan(0.05);
  });

  it('holds whole texts out, and warns of labels of the same text', async () => {
    const { run, file } = await beside();
    const labels = Array.from({ length: 60 }, (_, i) =>
      JSON.stringify({ input: `Text ${i >> 1}`, type: 'predicate', instructions: `Paid ${i}?`, label: true }),
    );
    await writeFile(file, labels.join('\n'));
    const { err, out } = await run(file, '--target-error', '0.1');
    expect(err).toContain('60 labels are about 30 texts. Labels of one text are not independent.');
    expect(out).toMatch(/predicate +10\.0% +p >= 0\.0000 +30 +30 +0 /);
  });

  it('eval reports, compares and fails below --min-accuracy', async () => {
    const { evaluate, file, home } = await beside();
    await writeFile(file, LABELS.join('\n'));
    const html = join(home, 'report.html');
    const first = await evaluate(file, '--json', '--html', html);
    expect(first.code).toBe(0);
    const report = JSON.parse(first.out);
    expect(report).toMatchObject({
      model: 'assay/starter',
      labels: 40,
      accuracy: { value: 0.6 },
      ece: { value: expect.closeTo(0.3, 9) },
    });
    expect(report.questions[0]).toMatchObject({
      name: 'Paid?',
      confusion: {
        counts: [
          [24, 0],
          [16, 0],
        ],
      },
    });
    expect(await readFile(html, 'utf8')).toMatch(/^<!doctype html>.*<svg .*<\/html>\n$/s);
    const before = join(home, 'before.json');
    await writeFile(before, first.out);
    const second = await evaluate(file, '--compare', before, '--min-accuracy', '0.7');
    expect(second.code).toBe(1);
    expect(second.err).toContain('The accuracy, 60.0%, is below 70.0%.');
    expect(second.out).toMatch(/accuracy +60\.0% \(43\.3% to 75\.1%\).*0 only here, 0 only there; p = 1\.0/s);
    await writeFile(file, LABELS.slice(1).join('\n'));
    expect(await evaluate(file, '--compare', before)).toMatchObject({
      code: 2,
      err: expect.stringContaining('different labels'),
    });
  });

  it('--out writes the calibration elsewhere, --json prints it', async () => {
    const { run, file, home, stored } = await beside();
    await writeFile(file, LABELS.join('\n'));
    const out = join(home, 'calibration.json');
    const ran = await run(file, '--out', out, '--json');
    expect(JSON.parse(ran.out)).toEqual(JSON.parse(await readFile(out, 'utf8')));
    expect(existsSync(stored)).toBe(false);
  });

  it.each([
    ['no file and no --reset', [], '', 'Give either a file of labels or --reset.'],
    ['too few labels', ['FILE'], LABELS.slice(0, 5).join('\n'), 'has 5 labels. Calibration needs at least 20'],
    ['--reset with a plot', ['--reset', '--plot', 'x.svg'], '', '--plot and --out need a file of labels.'],
    ['a folder that does not exist', ['FILE', '--out', '/none/x.json'], '', '/none cannot be written to (ENOENT).'],
    ['a folder as the file', ['FILE', '--plot', '/'], '', '/ is a folder. Name a file.'],
    ['no name of a file', ['FILE', '--out', ''], '', '--plot and --out need the name of a file.'],
    ['a line that is not JSON', ['FILE'], '{', 'line 1: This is not JSON: '],
    [
      'a line without a text',
      ['FILE'],
      '{"label":true}',
      'line 1: input is required. npm run -s assay -- calibrate --help shows',
    ],
    [
      'a question of no known type',
      ['FILE'],
      '{"input":"x","type":"guess","label":true}',
      'type must be one of: "predicate", "choice", "score", "multi", "extract".',
    ],
    [
      'a label that is none of the answers',
      ['FILE'],
      '{"input":"x","type":"predicate","instructions":"?","label":"yes"}',
      'label must be true or false.',
    ],
  ])('%s is told', async (_, args, content, message) => {
    const { run, file } = await beside();
    await writeFile(file, content);
    const { code, err } = await run(...args.map((arg) => (arg === 'FILE' ? file : arg)));
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});
