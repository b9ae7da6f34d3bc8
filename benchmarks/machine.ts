import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { kernelFamily } from '../runtime/compile/kernels.ts';
import type { Report } from './report.ts';
import { THREADS } from './systems/start.ts';

const PACKAGES = ['onnxruntime-node', 'node-llama-cpp', '@huggingface/transformers'];

/** Reports the machine and the software versions of a measurement, as figures of the system `machine`. */
export async function reportMachine(report: Report): Promise<void> {
  const say = (what: string, metric: string, value: number, unit: string) =>
    report({ system: 'machine', case: what, metric, value, unit });
  say(new Date().toISOString().slice(0, 10), 'used', 1, '');
  const processors = cpus();
  say(processors[0]?.model.trim() ?? 'unknown processor', 'logical processors', processors.length, '');
  say('memory', 'total', Math.round(totalmem() / 2 ** 20) / 1024, 'GiB');
  say('systems under test', 'threads', THREADS, '');
  say('busy with other work before', 'for a second', await busyProcessors(), 'processors');
  say(`kernels for ${kernelFamily()}`, 'used', 1, '');
  say(`commit ${commit()}`, 'used', 1, '');
  say(`${platform()} ${release()} ${arch()}`, 'used', 1, '');
  say(`Node.js ${process.versions.node}`, 'used', 1, '');
  for (const name of PACKAGES) {
    const version = installedVersion(name);
    if (version) say(`${name} ${version}`, 'used', 1, '');
  }
}

/** Returns the mean number of processors that other processes keep busy. Measures for a second, idle itself. */
async function busyProcessors(): Promise<number> {
  const spent = () => {
    const times = cpus().map((cpu) => cpu.times);
    const sum = (of: (one: (typeof times)[number]) => number) => times.reduce((all, one) => all + of(one), 0);
    return {
      all: sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq),
      idle: sum(({ idle }) => idle),
    };
  };
  const before = spent();
  await sleep(1_000);
  const after = spent();
  return cpus().length * (1 - (after.idle - before.idle) / (after.all - before.all));
}

/** Returns the commit of the measured code, and a note if the working tree has changes. */
function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : ' with changes'}`;
  } catch {
    return 'unknown';
  }
}

function installedVersion(name: string): string | undefined {
  for (const folder of ['.', '..']) {
    const file = new URL(`${folder}/node_modules/${name}/package.json`, import.meta.url);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return undefined;
}
