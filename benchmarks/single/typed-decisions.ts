import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { pythonPackages } from '../../tests/clients/python-packages.ts';
import { KEY, startServer } from '../http/server.ts';
import type { Report } from '../report.ts';

const HELP = `npm run bench -- typed-decisions [--precision=auto]
npm run bench -- typed-decisions --url http://127.0.0.1:8080 --key sk-assay-... [--model org/name]

Puts the 400 cases of typed-decisions (2,000 decisions with gold distributions) to a server's /v1/systemone, with the PyPI package tool-eval-bench 3.0.0, which has them.
Without --url it starts the starter model. A refused or failed request ends the benchmark with an error.`;

/** Holds the figures of a run. */
interface Figures {
  accuracy: number;
  correct: number;
  total: number;
  errors: number;
  kl: number;
  brier: number;
  ece: number;
}

/** Measures accuracy and calibration on typed-decisions, as its published rows are measured. */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      key: { type: 'string', default: process.env.ASSAY_API_KEY ?? '' },
      model: { type: 'string', default: 'assay/starter' },
      precision: { type: 'string', default: 'auto' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const bin = await pythonPackages('tool-eval-bench==3.0.0');
  if (bin === null) return;
  const server = values.url ? null : await startServer(['--precision', values.precision]);
  const [url, key] = server ? [server.url, KEY] : [values.url!, values.key];
  try {
    const figures = await evaluate(join(bin, 'python'), { url, key, model: values.model });
    const refused = server?.logged(0).filter(({ path, status }) => path === '/v1/systemone' && status !== 200) ?? [];
    if (figures.errors > 0 || refused.length > 0) {
      throw new Error(`${figures.errors} decisions have no answer; refused: ${JSON.stringify(refused)}`);
    }
    const what = `${figures.total} decisions`;
    report({ system: values.model, case: what, metric: 'accuracy', value: figures.accuracy, unit: '%' });
    report({ system: values.model, case: what, metric: 'KL from gold', value: figures.kl, unit: 'nats' });
    report({ system: values.model, case: what, metric: 'Brier score', value: figures.brier, unit: '' });
    report({ system: values.model, case: what, metric: 'ECE', value: figures.ece, unit: '' });
  } finally {
    await server?.stop();
  }
}

async function evaluate(
  python: string,
  { url, key, model }: { url: string; key: string; model: string },
): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'typed-decisions-'));
  const target = ['--base-url', url, '--api-key', key, '--model', model];
  const flags = ['--json', '--output-dir', folder, '--no-live'];
  const child = spawn(python, ['-m', 'tool_eval_bench', 'plugin', 'decision', ...target, ...flags], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`tool-eval-bench ended with code ${code}`);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.md'));
  return figuresIn(await readFile(join(folder, at(files, 0)), 'utf8'));
}

/** Reads the figures from tool-eval-bench's report in Markdown. Throws if one is missing. */
function figuresIn(report: string): Figures {
  const [accuracy, correct, total] = numbers(report, /\*\*Accuracy:\*\* ([\d.]+)% \((\d+)\/(\d+) decisions\)/);
  const [kl, brier, ece] = numbers(
    report,
    /\*\*KL from gold:\*\* ([\d.]+) · \*\*Brier:\*\* ([\d.]+) · \*\*ECE:\*\* ([\d.]+)/,
  );
  const [errors] = numbers(report, /\((\d+) decision errors\)/);
  const figures = { accuracy, correct, total, errors, kl, brier, ece };
  if (Object.values(figures).some((one) => one === undefined)) throw new Error(`figures are missing in: ${report}`);
  // A cast: the line before has checked that all are present.
  return figures as Figures;
}

function numbers(text: string, pattern: RegExp): (number | undefined)[] {
  return (pattern.exec(text) ?? []).slice(1).map(Number);
}
