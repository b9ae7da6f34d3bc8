import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import type { Report } from './report.ts';
import { THREADS } from './systems/start.ts';

const PACKAGES = ['onnxruntime-node', 'node-llama-cpp', '@huggingface/transformers'];

/** What a figure was measured on and with, as figures of the system `machine`, so that no figure is without them. */
export function reportMachine(report: Report): void {
  const say = (what: string, metric: string, value: number, unit: string) =>
    report({ system: 'machine', case: what, metric, value, unit });
  say(new Date().toISOString().slice(0, 10), 'used', 1, '');
  const processors = cpus();
  say(processors[0]?.model.trim() ?? 'unknown processor', 'logical processors', processors.length, '');
  say('memory', 'total', Math.round(totalmem() / 2 ** 20) / 1024, 'GiB');
  say('systems under test', 'threads', THREADS, '');
  say('busy with other work before', 'in the last minute', loadavg()[0]!, 'processors');
  say(`${platform()} ${release()} ${arch()}`, 'used', 1, '');
  say(`Node.js ${process.versions.node}`, 'used', 1, '');
  for (const name of PACKAGES) {
    const version = installedVersion(name);
    if (version) say(`${name} ${version}`, 'used', 1, '');
  }
}

function installedVersion(name: string): string | undefined {
  for (const folder of ['.', '..']) {
    const file = new URL(`${folder}/node_modules/${name}/package.json`, import.meta.url);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return undefined;
}
