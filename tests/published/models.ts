import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
/** The folder of the converted models, 2.5 GB; kept between runs. */
const FOLDER = process.env.ASSAY_PUBLISHED_MODELS || join(HERE, 'work');

/** Converts the published model with both exporters, unless that is done, and returns the folder of the models. */
export function publishedModels(): string {
  for (const [exporter, model] of [
    ['optimum', 'smollm2-onnx'],
    ['genai', 'smollm2-genai'],
  ] as const) {
    const done = join(FOLDER, `${model}.done`);
    if (existsSync(done)) continue;
    const venv = join(FOLDER, `venv-${exporter}`);
    const python = join(venv, 'bin/python');
    run('python3', '-m', 'venv', venv);
    run(python, '-m', 'pip', 'install', '-q', '-r', join(HERE, `requirements-${exporter}.txt`));
    run(python, join(HERE, 'convert.py'), exporter, FOLDER);
    writeFileSync(done, '');
  }
  return join(FOLDER, 'models');
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: 'inherit' });
}
